cudamem version --json | sed 's/": "[0-9.]*"/": "N"/'
