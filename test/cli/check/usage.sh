cp "$DATA/train.pickle.gz" train.gz
cudamem check train.gz
echo $?
cudamem check --no-oom --since peak train.gz
echo $?
cudamem check --no-leaks --since oom train.gz
echo $?
cudamem check --no-leaks --since end train.gz@peak
echo $?
cudamem check --no-oom missing
echo $?
