# What the first step allocated is no leak of the later ones.
cudamem report --by leak --since '#200' --bytes --frames user "$DATA/leak_after.pickle.gz"
