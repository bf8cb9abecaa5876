cudamem convert snapshot.bin
