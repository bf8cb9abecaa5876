gzip -dc "$DATA/frag.trace.txt.gz" >expected
cudamem trace -o out "$DATA/frag.pickle.gz" && cmp out expected && ls
