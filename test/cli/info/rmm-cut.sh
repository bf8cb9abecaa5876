# The log of a killed process ends in the middle of a row: the rest is read, and info says that something is missing.
head -c -20 "$DATA/rmm.csv.dev0" >log
cudamem info log | grep -e incomplete -e '^trace.entries ' -e '^actions'
