#!/bin/sh
# Instructions of a cached pair of cudamem_alloc() and cudamem_free(), counted by callgrind as the difference between two
# runs: for a whole segment, and for a block that is cut off and merged back.
#
#     library_bench.sh --check LIBRARY_BENCH   against their bounds; 77 where valgrind is not there
set -u
[ "${1:-}" = --check ] && shift
bench=${1:-}
[ -x "$bench" ] || { echo "usage: library_bench.sh --check LIBRARY_BENCH" >&2; exit 2; }
[ -z "${CUDAMEM_TEST_SANITIZED:-}" ] || exit 77 # sanitizers count as well
command -v valgrind >/dev/null 2>&1 || { echo "skipped: valgrind is not here"; exit 77; }
pairs=5000
failed=0

count() { # PAIRS SIZE
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" 1 "$1" "$2" 2>&1 | awk '/Collected :/ { print $4 }'
}

row() { # NAME SIZE MOST
    few=$(count $pairs "$2")
    many=$(count $((2 * pairs)) "$2")
    [ -n "$few" ] && [ -n "$many" ] || { echo "skipped: this valgrind cannot run it"; exit 77; }
    pair=$(((many - few) / pairs))
    echo "$1: $pair instructions a pair"
    [ $pair -le "$3" ] || { echo "more than $3"; failed=1; }
}

row whole 31457280 600
row split 4096 1150
exit $failed
