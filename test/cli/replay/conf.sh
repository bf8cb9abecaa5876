cudamem replay --bytes --conf expandable_segments:True --conf max_split_size_mb:64 "$DATA/whatif.pickle.gz"
