# The cause and the remedy come first; every number is the one that the state and the replay give.
cudamem explain "$DATA/frag.pickle.gz@oom"
