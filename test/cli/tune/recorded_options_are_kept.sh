# collections do nothing without a limit, so their threshold is left as it is
cudamem tune "$DATA/frag_conf.pickle.gz" | grep export
cudamem tune --memory-limit 4503296409 "$DATA/frag_conf.pickle.gz" | grep export
