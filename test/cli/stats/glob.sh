cudamem stats 'reserved_bytes.all.*' "$DATA/mempool.pickle.gz"
