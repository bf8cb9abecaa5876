# needs: mandoc
# The page, as plain text in a pipe, the same by both ways to it.
cudamem help mem | sed -n '/^NAME/,/^SYNOPSIS/p'
cudamem help mem >one
cudamem mem --help >two
cmp one two
if grep -q "$(printf '\b')" one; then echo "overstruck"; fi
