cudamem ps --remove
