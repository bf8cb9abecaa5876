cudamem mem -h
