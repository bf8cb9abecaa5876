#!/bin/sh
# Failures of recorded programs, explained.
. "$(dirname "$0")/lib.sh"
unset PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF CUDAMEM_ALLOCATOR CUDAMEM_ALLOC_CONF CUDAMEM_MEMORY_LIMIT 2>/dev/null

explained() {
    "$CUDAMEM" explain "$@" >explain.out 2>explain.err || fail "explain: $(cat explain.err)"
    tr -s ' ' <explain.out
}

# A program of its own allocations: who asked, what was free, and the sums.
a_plain_programs_failure_is_explained() {
    record=$("$CUDAMEM" record --sim=1:1GiB -o snapshot.bin "$PROGRAMS/oom" 1200000000 2>&1) || fail "$record"
    text=$(explained --bytes snapshot.bin)
    contains "the cause" "$text" "the request is too big. 1200000000 B were asked for; with nothing else allocated there would be 1073741824 B."
    contains "who asked" "$text" ":ask_too_much"
    contains "what was free" "$text" "device free 1071644672 B"
    contains "what it held" "$text" "allocated 2097152 B by the program: 1 allocation"
    contains "who held it" "$text" "2097152 B (100.0%) in 1 block by"
    record=$("$CUDAMEM" record --sim=1:1GiB -o snapshot.bin "$PROGRAMS/oom" 1072000000 2>&1) || fail "$record"
    text=$(explained --bytes snapshot.bin)
    contains "the second cause" "$text" "the memory was in use. 1072000000 B were asked for and the device had 1071644672 B free; the program held 2097152 B; 355328 B more would have been needed."
}

# Under our own allocator settings are judged, and the frame is the program's, not CUDA's.
a_served_programs_failure_is_explained() {
    record=$("$CUDAMEM" record --sim=1:1GiB --allocator caching -o snapshot.bin "$PROGRAMS/example" 2>&1) || fail "$record"
    text=$(explained --bytes snapshot.bin)
    contains "the cause" "$text" "the memory was in use. 1073741824 B were asked for"
    contains "the settings" "$text" "With none of the "
    contains "who asked" "$text" ":get"
    lacks "CUDA's frame" "$text" ":cudaMalloc"
    held=$(printf '%s\n' "$text" | sed -n 's/^ - allocated *\([0-9]*\) B.*/\1/p')
    expect "what is in use" "$held" "$("$CUDAMEM" stats snapshot.bin@oom | sed -n 's/^allocated_bytes.all.current //p')"
}

run_case "$1"
