cudamem tune --memory-limit 4503296409 -n 3 "$DATA/frag.pickle.gz"
