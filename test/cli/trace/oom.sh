cudamem trace --action oom "$DATA/frag.pickle.gz"
