cudamem mem --color blue
