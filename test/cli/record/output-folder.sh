cudamem record -o no/such/folder/out.bin true
