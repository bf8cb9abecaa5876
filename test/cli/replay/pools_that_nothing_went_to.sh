cudamem replay --pool 7:9=no_split "$DATA/frag.pickle.gz" | tail -1
cudamem replay --verify --scope 7:9=6..6 "$DATA/mempool.pickle.gz" | grep pool
cudamem replay --json --pool 7:9=no_split "$DATA/frag.pickle.gz" | grep idle
cudamem tune --pool 7:9=no_split "$DATA/graphs.pickle.gz" | grep 7:9
