cp "$DATA/rmm.csv.dev0" "$DATA/train.pickle.gz" .
cudamem merge rmm.csv.dev0 train.pickle.gz -o all.bin
