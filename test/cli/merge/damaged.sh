# Nothing is left of a merge that failed.
head -c 100 "$DATA/train.pickle.gz" >cut.gz
cudamem merge "$DATA/frag.pickle.gz" cut.gz -o all.bin
status=$?
ls
exit $status
