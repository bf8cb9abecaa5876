cudamem convert --to csv --view blocks "$DATA/mempool.pickle.gz" | head -3
