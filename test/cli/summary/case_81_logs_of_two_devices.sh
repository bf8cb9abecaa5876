# RMM writes a log a device and puts the device into the name, now at the end and now before the suffix; the content,
# not the name, says that it is a log.
cp "$DATA/rmm.csv.dev0" x.csv.dev0
cp "$DATA/rmm.csv.dev1" x.csv.dev1
cudamem summary -a x.csv.dev0 x.csv.dev1
cp x.csv.dev1 y.dev3.csv
gzip -c x.csv.dev1 >z.csv.dev12.gz
cudamem summary y.dev3.csv z.csv.dev12.gz | grep 'device ID'
cudamem summary - <x.csv.dev1 | grep 'device ID'
mv x.csv.dev1 anything.pickle
cudamem summary anything.pickle | grep 'device ID'
cudamem summary --json x.csv.dev0 y.dev3.csv | tr , '\n' | grep '"device":'
