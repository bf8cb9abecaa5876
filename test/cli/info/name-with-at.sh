# A file whose whole name exists wins over a moment.
cp "$DATA/mempool.pickle.gz" run@peak
cudamem info run@peak | grep -E '^(file|moment)'
cudamem info run@peak@start | grep -E '^(file|moment)'
