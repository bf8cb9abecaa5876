cudamem version -o no/such/folder/file
