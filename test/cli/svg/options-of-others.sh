cudamem svg --map --reverse "$DATA/mempool.pickle.gz" -o out.svg
echo $?
cudamem svg --map --memory "$DATA/mempool.pickle.gz" -o out.svg
echo $?
cudamem svg --map --color red "$DATA/mempool.pickle.gz" -o out.svg
echo $?
ls
