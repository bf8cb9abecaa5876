#!/bin/sh
# Instructions of a cached allocation and its free, counted by callgrind: so many among 10, 1,000 and 100,000 other free
# blocks, and the ratio of the most to the fewest.
#
#     alloc_bench.sh ALLOC_BENCH           every kind of pair and of other blocks; installs valgrind
#     alloc_bench.sh --check ALLOC_BENCH   a few of them, against their bounds; 77 where valgrind is not there
set -u
check=
[ "${1:-}" = --check ] && check=1 && shift
bench=${1:-}
[ -x "$bench" ] || { echo "usage: alloc_bench.sh [--check] ALLOC_BENCH" >&2; exit 2; }
[ -z "${CUDAMEM_TEST_SANITIZED:-}" ] || exit 77 # sanitizers count as well
if ! command -v valgrind >/dev/null 2>&1; then
    [ -z "$check" ] || { echo "skipped: valgrind is not here"; exit 77; }
    . "$(dirname "$0")/../../tools/packages.sh"
    want valgrind command valgrind
    install_missing || exit 1
fi
pairs=2000
failed=0
# Valgrind may be older than the compiler.
if valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" exact varied 10 1 2>&1 | grep -q 'debuginfo reader'; then
    echo "skipped: this valgrind cannot read this program's debugging information"
    exit 77
fi

instructions() { # PAIR FILL FREE: of one pair
    said=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='pairs_run*' \
        "$bench" "$1" "$2" "$3" $pairs 2>&1) || { echo "$said" >&2; return 1; }
    echo "$said" | awk -v pairs=$pairs '/Collected :/ { printf "%.0f", $4 / pairs }'
}

# PAIR FILL MOST [FREE...]: one line; with --check more than MOST, or 1.5 times as many among many blocks, is a failure.
row() {
    pair=$1 fill=$2 most=$3
    shift 3
    counts=
    for free; do
        count=$(instructions "$pair" "$fill" "$free")
        [ -n "$count" ] || { echo "$pair $fill: not measured" >&2; failed=1; return; }
        counts="$counts $count"
    done
    echo "$counts" | awk -v pair="$pair" -v fill="$fill" -v most="$most" -v check="$check" '{
        low = high = $1
        for (i = 1; i <= NF; i++) { if ($i < low) low = $i; if ($i > high) high = $i }
        bad = check && (high > most || high > 1.5 * low)
        printf "%-12s %-10s", pair, fill
        for (i = 1; i <= NF; i++) printf " %8d", $i
        printf "   %.2f%s\n", high / low, bad ? "   more than " most ", or 1.5 times as many" : ""
        exit bad
    }' || failed=1
}

if [ -n "$check" ]; then
    row exact varied 400 10 100000
    row exact equal 400 10 100000
    row exact_each varied 500 10 100000
    row split varied 800 10 100000
    row split ascending 800 10 100000
    row split_each varied 1150 10 100000
    exit $failed
fi
echo "instructions of a pair among 10, 1,000 and 100,000 other free blocks; the most to the fewest"
for pair in exact exact_each exact_queue split split_each split_large; do
    for fill in varied equal ascending; do
        row $pair $fill 0 10 1000 100000
    done
done
exit $failed
