cudamem summary "$DATA/mempool.pickle.gz"
