# The picture goes beside the file, and a line says so; it is XML.
cp "$DATA/mempool.pickle.gz" snapshot.bin
cudamem svg --segments
head -c 5 snapshot.segments.svg
echo
tail -n 1 snapshot.segments.svg
ls
