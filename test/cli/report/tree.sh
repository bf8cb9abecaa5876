cudamem report --tree --bytes -n 8 "$DATA/train.pickle.gz"
cudamem report --tree --json -n 1 "$DATA/leak_after.pickle.gz" | sed -n '/"tree"/,$p'
