# Without a moment: the last failure, or the peak where nothing failed.
cudamem explain --no-settings "$DATA/frag.pickle.gz" >last
cudamem explain --no-settings "$DATA/frag.pickle.gz@oom3" | cmp - last && echo alike
cudamem explain --no-settings "$DATA/kvcache.pickle.gz" >peak
cudamem explain --no-settings "$DATA/kvcache.pickle.gz@peak" | cmp - peak && cat peak
