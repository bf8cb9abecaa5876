# Writes one line `ENTRY(name)` for each name of the list: the driver's functions that we wrap.
#
#   awk -f make_entries.awk wrapped.txt > entries.inc

BEGIN { print "/* Made by make_entries.awk; do not edit. */" }
/^[A-Za-z_][A-Za-z0-9_]*$/ { printf "ENTRY(%s)\n", $0 }
