cp "$DATA/mempool_oom.pickle.gz" file.gz
cudamem info file.gz
