# What leaked comes first, with the stack that allocated it.
cp "$DATA/leak_before.pickle.gz" before.gz
cp "$DATA/leak_after.pickle.gz" after.gz
cudamem diff -n 1 before.gz after.gz
cudamem diff -n 1 --json before.gz after.gz | sed -n 's/.*\("delta": [0-9]*\),.*/\1/p' | head -1
