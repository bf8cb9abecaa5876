echo nonsense >bad
cudamem svg --memory bad -o out.svg
status=$?
ls
exit $status
