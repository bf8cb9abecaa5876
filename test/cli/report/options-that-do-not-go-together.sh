cudamem report --since start "$DATA/train.pickle.gz"; echo $?
cudamem report --within 3 "$DATA/train.pickle.gz"; echo $?
cudamem report --tree --group owner "$DATA/train.pickle.gz"; echo $?
cudamem report --categories x.json "$DATA/train.pickle.gz"; echo $?
cudamem report --by leak --since end "$DATA/train.pickle.gz@start"; echo $?
cp "$DATA/train.pickle.gz" train.gz
cudamem report --by leak --since oom train.gz; echo $?
