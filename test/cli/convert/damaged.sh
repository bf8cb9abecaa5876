# One line, status 3, and no file.
gzip -dc "$DATA/mempool.pickle.gz" | head -c 2000 >cut.pickle
cudamem convert --to bin cut.pickle -o out.bin
status=$?
ls
exit $status
