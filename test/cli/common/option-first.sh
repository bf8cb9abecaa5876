cudamem --json info
