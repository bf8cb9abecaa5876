for option in --json --bytes '--rows 3' '--sort after' '--min-delta 1M'; do
    cudamem diff --svg $option "$DATA/mempool.pickle.gz" "$DATA/mempool_end.pickle.gz"
done
cudamem diff --svg --group annotation "$DATA/mempool.pickle.gz" "$DATA/mempool_end.pickle.gz"
cudamem diff --reverse "$DATA/mempool.pickle.gz" "$DATA/mempool_end.pickle.gz"
cudamem diff --width after "$DATA/mempool.pickle.gz" "$DATA/mempool_end.pickle.gz"
