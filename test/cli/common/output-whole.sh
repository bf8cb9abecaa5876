# The file is there afterwards, with nothing beside it; an existing one is replaced.
echo old >out
cudamem version -o out && sed 's/ .*//' out && ls -A
