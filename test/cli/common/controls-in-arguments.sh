# Nothing from the command line controls the terminal.
cudamem "$(printf 'x\033[31my')"
