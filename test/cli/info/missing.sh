cudamem info no-such-file.bin
