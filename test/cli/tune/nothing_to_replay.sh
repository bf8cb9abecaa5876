cp "$DATA/whatif.pickle.gz" .
cudamem tune --device 7 whatif.pickle.gz
