# What a log does not tell is said, and a file without a trace is explained from its segments.
cudamem explain "$DATA/rmm.csv.dev0"
cudamem convert --to bin --entries 0..0 -o none.bin "$DATA/graphs.pickle.gz" && cudamem explain none.bin
cudamem explain --device 7 "$DATA/graphs.pickle.gz" 2>&1 | sed "s,$DATA/,,"
