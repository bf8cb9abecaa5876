cudamem mem --device zero
