# Without a command: the list on standard error, and a usage error.
cudamem
