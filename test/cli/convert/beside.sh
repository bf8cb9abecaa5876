# Without -o a binary goes beside the input, and replaces nothing.
cp "$DATA/mempool.pickle.gz" one.pickle.gz
cudamem convert --to bin one.pickle.gz
ls
cudamem convert --to bin one.pickle.gz
