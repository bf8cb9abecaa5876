# A lone dash is standard input, and takes a moment as files do.
gzip -dc "$DATA/train.pickle.gz" | cudamem segsum -@peak >a
cudamem segsum "$DATA/train.pickle.gz@peak" | cmp - a && echo alike
gzip -dc "$DATA/train.pickle.gz" | cudamem segsum -@
cudamem summary -a@peak "$DATA/train.pickle.gz"
