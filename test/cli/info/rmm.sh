# Past midnight, time goes on; a pipe and gzip are read, too.
gzip -c "$DATA/rmm.csv.dev0" >log.gz
cudamem info log.gz
cudamem info - <log.gz | sed 1d >piped
cudamem info log.gz | sed 1d | diff - piped
