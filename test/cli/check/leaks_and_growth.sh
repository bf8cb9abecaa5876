# What the report of leaks has; what was there before the moment is none.
cp "$DATA/leak_after.pickle.gz" after.gz
cudamem check --bytes --no-leaks --since '#200' after.gz
echo $?
cudamem report --by leak --since '#200' --bytes --frames user after.gz | head -1
cudamem check --no-leaks --since end after.gz
echo $?
cudamem check --max-growth 1KiB --since '#200' after.gz >/dev/null
echo $?
cudamem check --max-growth 1MiB --since '#200' after.gz
echo $?
