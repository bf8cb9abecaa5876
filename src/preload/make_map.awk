# Writes a version script that exports the names given, one a line, and nothing else.
#
#   awk -f make_map.awk names.txt > object.map

BEGIN { print "{\n  global:" }
/^[A-Za-z_][A-Za-z0-9_]*$/ { printf "    %s;\n", $0 }
END { print "  local: *;\n};" }
