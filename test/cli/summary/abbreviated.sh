# A trace without its beginning: what it cannot tell is a lower bound.
cudamem convert --to pickle --entries 12.. -o cut.pickle "$DATA/mempool.pickle.gz"
cudamem summary -a cut.pickle
