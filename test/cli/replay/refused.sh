cudamem replay --conf max_split_size_mb:1 "$DATA/whatif.pickle.gz"
