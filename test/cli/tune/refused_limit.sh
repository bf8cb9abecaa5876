cudamem tune --memory-limit much "$DATA/whatif.pickle.gz"
