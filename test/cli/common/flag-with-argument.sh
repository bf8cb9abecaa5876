cudamem mem --json=yes
