# The shipped rules as a text of C.
s/\\/\\\\/g
s/"/\\"/g
s/^/"/
s/$/\\n"/
