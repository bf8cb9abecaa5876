# What is not exact, left out or said in vain is told as replay tells it.
cudamem tune "$DATA/frag_conf.pickle.gz" | grep -E '^# (not|it coll|[0-9]+ req)'
cudamem tune --json "$DATA/frag_conf.pickle.gz" | grep -E '"(exact|difference_entry|recorded_peak_reserved_bytes|contradictions)"'
cat >log.csv <<'END'
Thread,Time,Action,Pointer,Size,Stream
1,10:00:00.000000,allocate,0x7f0000000000,1073741824,0
1,10:00:01.000000,free,0x7f1000000000,1073741824,0
1,10:00:02.000000,allocate failure,(nil),85899345920,0
END
cudamem tune log.csv | grep -E '^#'
