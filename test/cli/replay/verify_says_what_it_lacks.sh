# No placement is a line, too; collections happen at a share of a limit that a recording does not tell.
cudamem replay --verify "$DATA/expandable.pickle.gz"
cudamem replay --verify "$DATA/frag_conf.pickle.gz"
echo "status $?"
