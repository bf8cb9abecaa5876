# What is left of a trace starts from the rebuilt state, and says so.
cudamem convert --to pickle --entries 20000.. -o cut.pickle "$DATA/whatif.pickle.gz"
cudamem replay --conf '' --conf expandable_segments:True cut.pickle
cudamem replay --verify cut.pickle
echo "status $?"
