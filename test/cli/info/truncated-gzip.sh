head -c 1000 "$DATA/mempool.pickle.gz" >cut.gz
cudamem info cut.gz
