cudamem mem snapshot.bin
