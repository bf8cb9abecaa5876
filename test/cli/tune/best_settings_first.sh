cudamem tune --bytes "$DATA/whatif.pickle.gz"
