cudamem replay --verify "$DATA/whatif.pickle.gz" && cudamem replay --verify --memory-limit 4503296409 "$DATA/frag_conf.pickle.gz"
