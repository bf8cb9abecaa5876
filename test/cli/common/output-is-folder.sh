mkdir out
cudamem version -o out
