# Case 44: the exit status, which condition, by how much, and who.
cp "$DATA/frag.pickle.gz" frag.gz
cudamem check --bytes --no-oom --complete --max-peak 3GiB --max-peak-reserved 8GiB --max-retries 2 frag.gz
echo $?
cudamem check --no-oom --complete --max-peak 8GiB frag.gz
echo $?
cudamem check --no-oom frag.gz@'#3000'
echo $?
