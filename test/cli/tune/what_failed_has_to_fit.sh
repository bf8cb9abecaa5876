# A request of 80 GiB failed: no smaller limit is advised, whatever was asked.
cat >log.csv <<'END'
Thread,Time,Action,Pointer,Size,Stream
1,10:00:00.000000,allocate,0x7f0000000000,1073741824,0
1,10:00:01.000000,allocate failure,(nil),85899345920,0
1,10:00:02.000000,allocate,0x7f1000000000,1073741824,0
END
for limit in 1GiB 40GiB; do
    cudamem tune --memory-limit $limit log.csv | tail -2
done
sed 's/85899345920/858993459200/' log.csv >larger.csv
cudamem tune --memory-limit 1GiB larger.csv | tail -2
