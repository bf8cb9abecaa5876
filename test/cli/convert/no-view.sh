cudamem convert --to pickle --view memory "$DATA/mempool.pickle.gz"
