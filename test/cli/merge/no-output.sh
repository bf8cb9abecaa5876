gzip -dc "$DATA/train.pickle.gz" >train.pickle
cudamem merge train.pickle
