# The line that leaks comes first, with its size to the byte.
cudamem diff --bytes -n 1 "$DATA/leak_before.pickle.gz" "$DATA/leak_after.pickle.gz"
