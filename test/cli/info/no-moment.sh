cp "$DATA/mempool.pickle.gz" file.gz
cudamem info file.gz@pea
