cudamem tune --memory-limit 3.5GiB -n 1 "$DATA/frag.pickle.gz"
