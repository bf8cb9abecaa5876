cudamem tune "$DATA/frag_seed13.pickle.gz" | grep failed
