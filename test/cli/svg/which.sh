cudamem svg "$DATA/mempool.pickle.gz"
