# The log's device is that of its name, also for those that look at one device.
cp "$DATA/rmm.csv.dev1" x.csv.dev1
cudamem replay --bytes --conf '' --conf max_split_size_mb:64 x.csv.dev1 | grep -v '^# ' | cut -f1-8
cudamem replay --bytes --conf '' --device 1 x.csv.dev1 | grep -v '^# ' | cut -f1-8
cudamem replay --conf '' --device 0 x.csv.dev1
