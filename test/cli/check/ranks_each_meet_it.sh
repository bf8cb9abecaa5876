# Of several files each is checked, and those that do not hold are told.
cp "$DATA/mempool.pickle.gz" rank0.gz
cp "$DATA/frag.pickle.gz" rank1.gz
cudamem check --no-oom --max-peak 1GiB rank0.gz rank1.gz
echo $?
cudamem check --json --no-oom rank0.gz rank1.gz
echo $?
