cudamem diff only.bin
