cp "$DATA/rmm.csv.dev1" log.csv.dev99999999999
cudamem convert --to csv log.csv.dev99999999999
