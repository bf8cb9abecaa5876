cudamem report --json -n 1 --group function "$DATA/leak_after.pickle.gz" | sed 's|"file": ".*/|"file": "|'
