# Without a file: snapshot.bin of this folder, and a word about it.
cudamem segsum
gzip -dc "$DATA/mempool.pickle.gz" >snapshot.bin
cudamem segsum | cmp - "$DATA/mempool.segsum.txt" && echo same
