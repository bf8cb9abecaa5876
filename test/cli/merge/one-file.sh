# One file is what it was.
cudamem convert --to bin "$DATA/train.pickle.gz" -o one.bin
cudamem merge one.bin -o all.bin
cudamem stats one.bin >one.txt
cudamem stats all.bin | cmp - one.txt && echo the same numbers
cudamem trace one.bin >one.txt
cudamem trace all.bin | cmp - one.txt && echo the same trace
