cudamem diff - -@peak <"$DATA/graphs.pickle.gz"
