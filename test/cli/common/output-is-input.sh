# What is read is never replaced: the answer goes elsewhere or nowhere.
cp "$DATA/mempool.pickle.gz" here.pickle.gz
before=$(cksum <here.pickle.gz)
cudamem segsum -o here.pickle.gz here.pickle.gz
echo $?
cudamem segsum -o here.pickle.gz here.pickle.gz@start
echo $?
[ "$before" = "$(cksum <here.pickle.gz)" ] && echo untouched
