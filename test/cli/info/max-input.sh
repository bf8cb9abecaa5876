cp "$DATA/mempool.pickle.gz" file.gz
cudamem info --max-input 1K file.gz
