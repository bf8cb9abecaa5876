cudamem mem --jsno
