cudamem mem --device
