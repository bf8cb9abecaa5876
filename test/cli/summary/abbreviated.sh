cudamem summary -a "$DATA/mempool.pickle.gz"
