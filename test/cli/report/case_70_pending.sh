# A free that was requested and is not complete: its bytes are still held, and by whom is told.
cudamem report --bytes "$DATA/frag.pickle.gz@#367"
cudamem blocks --bytes --state pending "$DATA/frag.pickle.gz@#367"
