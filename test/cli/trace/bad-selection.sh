cudamem trace --action oom,alloo "$DATA/frag.pickle.gz"
