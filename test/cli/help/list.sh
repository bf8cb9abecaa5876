# The list, the same by every way to it.
cudamem help >one
cudamem -h >two
cmp one two && cat one
