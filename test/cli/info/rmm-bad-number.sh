sed 's/,5242880,0x0/,5242880000000000000000,0x0/' "$DATA/rmm.csv.dev0" >log
cudamem info log
