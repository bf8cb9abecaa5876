# What becomes of a log's rows; PyTorch's format gets the blocks, too.
cudamem convert --to csv "$DATA/rmm.csv.dev0" -o -
cudamem convert --to csv --view segments "$DATA/rmm.csv.dev0" -o -
cudamem convert --to pickle "$DATA/rmm.csv.dev0" -o log.pickle
cudamem trace log.pickle
cudamem convert --to bin "$DATA/rmm.csv.dev1" -o log.bin
cp "$DATA/rmm.csv.dev1" log.csv.dev1
cudamem stats log.bin >of-bin
cudamem stats log.csv.dev1 | cmp - of-bin
