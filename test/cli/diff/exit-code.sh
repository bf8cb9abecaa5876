cudamem diff --exit-code "$DATA/leak_before.pickle.gz" "$DATA/leak_after.pickle.gz" >grew
echo $?
cudamem diff --exit-code --min-delta 100GiB "$DATA/leak_before.pickle.gz" "$DATA/leak_after.pickle.gz" >none
echo $?
cudamem diff --exit-code "$DATA/leak_before.pickle.gz" "$DATA/leak_before.pickle.gz" >same
