#!/bin/sh
# What a recorder that was paused after recording costs, as a ratio to the same program that was never recorded; prints,
# asserts nothing.  With `gpu` on the machine's own device, else on the simulated one, whose calls cost next to nothing.
# usage: pause_bench.sh CUDAMEM PAUSE_BENCH SIM_FOLDER [PAIRS] [gpu]
[ $# -ge 3 ] || { echo "usage: pause_bench.sh CUDAMEM PAUSE_BENCH SIM_FOLDER [PAIRS] [gpu]" >&2; exit 2; }
CUDAMEM=$1 bench=$2 sim=$3 pairs=${4:-100000} options=--sim
export CUDAMEM
if [ "${5:-}" = gpu ]; then
    options=
else
    LD_LIBRARY_PATH=$sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

cost() {
    "$@" 2>/dev/null | sed -n 's/^ns_a_pair=//p'
}
never=$(cost "$bench" "$pairs")
# shellcheck disable=SC2086
paused=$(cost "$CUDAMEM" record $options -o "$folder/out.bin" "$bench" "$pairs" paused)
# shellcheck disable=SC2086
recorded=$(cost "$CUDAMEM" record $options --stacks none -o "$folder/out.bin" "$bench" "$pairs" recorded)
awk "BEGIN { printf \"a pair never recorded: %.1f ns; paused after recording: %.1f ns, %.3f of it; recorded without stacks: %.1f ns, %.3f of it\n\",
    $never, $paused, $paused / $never, $recorded, $recorded / $never }"
