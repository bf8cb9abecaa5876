cudamem report --by temporary --within 2 --bytes -n 3 --group function "$DATA/train.pickle.gz"
cudamem report --by temporary --within 0 --bytes "$DATA/train.pickle.gz"
