# For the scripts of this folder: sourced.  The environment names the pieces: CUDAMEM (the command), DUMP, PROGRAMS and
# OWN_PROGRAMS (folders), SIM (folder of the simulated driver), PRELOAD, FORWARD (libraries), SOURCE (this folder).
set -u
LC_ALL=C
export LC_ALL
unset LD_PRELOAD CUDAMEM_DISABLE CUDAMEM_DEBUG CUDAMEM_OUTPUT CUDAMEM_SIM CUDAMEM_SIM_FAULTS CUDAMEM_HOST 2>/dev/null
work=$(mktemp -d "${TMPDIR:-/tmp}/record-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
TMPDIR=$work/tmp
export TMPDIR
mkdir -p "$TMPDIR"

fail() {
    printf 'FAIL: %.600s\n' "$*" >&2
    for file in "$work"/*.err; do
        [ -s "$file" ] && { echo "--- $file" >&2; head -20 "$file" >&2; }
    done
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

# expect WHAT GOT WANTED
expect() {
    [ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

# contains WHAT TEXT PATTERN (a fixed string)
contains() {
    case $2 in *"$3"*) ;; *) fail "$1: '$3' is not in: $2" ;; esac
}

lacks() {
    case $2 in *"$3"*) fail "$1: '$3' is in: $2" ;; esac
}

# plain PROGRAM...: as it runs by itself on the simulated device; out in plain.out, plain.err; its status in $status
plain() {
    LD_LIBRARY_PATH=$SIM${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@" >plain.out 2>plain.err
    status=$?
}

# record OPTIONS PROGRAM...: the same under the recorder; out in record.out, record.err; its status in $status
record() {
    "$CUDAMEM" record --sim "$@" >record.out 2>record.err
    status=$?
}

# same PROGRAM...: plain and recorded runs print the same and end the same; the recording is snapshot.bin
same() {
    plain "$@"
    wanted=$status
    rm -f snapshot.bin
    record -o snapshot.bin "$@"
    expect "exit status of $1" "$status" "$wanted"
    cmp -s plain.out record.out || fail "$1 prints something else when recorded: $(diff plain.out record.out)"
    [ -f snapshot.bin ] || fail "$1: no snapshot was written"
}

# The same for programs of several processes, whose lines come in any order.
same_in_any_order() {
    plain "$@"
    wanted=$status
    rm -f snapshot*.bin
    record -o snapshot.bin "$@"
    expect "exit status of $1" "$status" "$wanted"
    expect "output of $1" "$(sort record.out)" "$(sort plain.out)"
}

dump() {
    "$DUMP" "${1:-snapshot.bin}" >dump.txt || fail "the snapshot cannot be read"
    cat dump.txt 2>/dev/null # grep -q may go away
}

# events FILE: "action size" in order, joined by commas
events() {
    dump "${1:-snapshot.bin}" | awk '$1 == "entry" { printf "%s%s %s", sep, $2, $3; sep = "," }'
}

# live FILE: bytes that were live at the end
live() {
    dump "${1:-snapshot.bin}" | awk '$1 == "live" { sum += $2 } END { printf "%d", sum }'
}

# The work of the programs driver_*: 1, 2 and 3 MiB in allocate_three, the first two freed in release_two.
three_events='segment_alloc 1048576,segment_alloc 2097152,segment_alloc 3145728,segment_free 1048576,segment_free 2097152'
check_three() {
    expect "events" "$(events)" "$three_events"
    expect "live at the end" "$(live)" 3145728
    expect "stacks of the allocations" "$(dump | grep '^entry segment_alloc' | grep -c 'stack=.*allocate_three;.*main')" 3
    expect "stacks of the frees" "$(dump | grep '^entry segment_free' | grep -c 'stack=.*release_two;.*main')" 2
}

# run_case NAME: the function of that name, in the script that sourced this
run_case() {
    [ "$(type "$1" 2>/dev/null | grep -c function)" = 1 ] || fail "no case $1"
    "$1"
    echo "ok: $1"
}
