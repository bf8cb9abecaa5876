cudamem convert --to pickle --entries 12.. -o cut.pickle "$DATA/mempool.pickle.gz"
cudamem stats 'reserved_bytes.all.*' cut.pickle
cudamem stats 'reserved_bytes.all.*' "$DATA/mempool.pickle.gz"
