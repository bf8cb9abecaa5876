# In the text, and in JSON; with the limit that the recording had, none is left but the one that a trace never tells.
cudamem replay "$DATA/frag.pickle.gz" | sed 1d | cut -f9
cudamem replay --json "$DATA/frag.pickle.gz" | grep at_least
cudamem replay --json --memory-limit 4503296409 "$DATA/frag.pickle.gz" | grep at_least
