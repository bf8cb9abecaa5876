cp "$DATA/leak_before.pickle.gz" before.gz
cp "$DATA/leak_after.pickle.gz" after.gz
cudamem summary -a before.gz after.gz | grep -v '^|'
