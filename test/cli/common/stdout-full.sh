cudamem version >/dev/full
