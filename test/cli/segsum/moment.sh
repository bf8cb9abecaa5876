# At a moment the segments are those that there were.
cudamem segsum "$DATA/leak_after.pickle.gz@start" | head -12
