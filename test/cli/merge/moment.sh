cp "$DATA/train.pickle.gz" .
cudamem merge train.pickle.gz@peak -o all.bin
