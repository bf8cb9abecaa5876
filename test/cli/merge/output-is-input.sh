gzip -dc "$DATA/train.pickle.gz" >train.pickle
cp train.pickle before
cudamem merge train.pickle -o train.pickle
status=$?
cmp train.pickle before && exit $status
