cudamem tune -n 1 "$DATA/whatif.pickle.gz" | cut -f1
