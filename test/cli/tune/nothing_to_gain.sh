cudamem tune "$DATA/graphs.pickle.gz"
cudamem tune --json "$DATA/graphs.pickle.gz" | grep export
