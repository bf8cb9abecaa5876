cudamem record ./no-such-program
