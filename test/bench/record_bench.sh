#!/bin/sh
# What recording costs, beside heaptrack's cost for malloc and free in the same run.  Prints; asserts nothing.
# usage: record_bench.sh RECORD_BENCH [EVENTS]
bench=$1
events=${2:-1000000}
[ -x "$bench" ] || { echo "usage: record_bench.sh RECORD_BENCH [EVENTS]" >&2; exit 2; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
chmod 700 "$folder"
CUDAMEM_RING_FOLDER=$folder
export CUDAMEM_RING_FOLDER

field() { # line key
    echo "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}

line=$("$bench" 0 "$events") || exit 1
bare=$(field "$line" ns_an_event)
echo "event without frames: $bare ns, $(field "$line" bytes_an_event) bytes; first round of the ring $(field "$line" first_round_ns) ns"
for depth in 10 20 30; do
    line=$("$bench" $depth "$events") || exit 1
    frames=$(field "$line" frames)
    cost=$(field "$line" ns_an_event)
    echo "event with $frames frames: $cost ns, $(awk "BEGIN { printf \"%.1f\", ($cost - $bare) / $frames }") ns a frame," \
        "$(field "$line" bytes_an_event) bytes"
    if command -v heaptrack > /dev/null; then
        plain=$(field "$("$bench" malloc $depth "$events")" ns_a_pair)
        traced=$(heaptrack -o "$folder/heaptrack" "$bench" malloc $depth "$events" 2> /dev/null | sed -n 's/.*ns_a_pair=//p')
        rm -f "$folder"/heaptrack*
        awk "BEGIN { added = $traced - $plain; pair = 2 * $cost
            printf \"    heaptrack adds %.0f ns to a malloc and free pair at this depth; two events of ours are %.0f ns: %.2f of that\n\", added, pair, pair / added }"
    fi
done
command -v heaptrack > /dev/null || echo "heaptrack is not installed: no comparison"
for threads in 1 2; do
    echo "$threads thread(s), cold ring: $(field "$("$bench" threads $threads "$events")" ns_an_event) ns an event"
done
