cudamem explain --json -n 1 "$DATA/frag.pickle.gz@oom"
