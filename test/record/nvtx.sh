#!/bin/sh
# Ranges that a program names by NVTX stand beside its memory, and change nothing of what it does.
. "$(dirname "$0")/lib.sh"

# annotations [FILE]: "STAGE name entry" a line
annotations() {
    dump "${1:-snapshot.bin}" | sed -n 's/^annotation \([A-Z]*\) \(.*\) thread=\([a-z]*\) entry=\([0-9]*\)$/\1 \2 \3 \4/p'
}

# within REGEX: sizes in MiB of the allocations made in such a range, joined by commas
within() {
    "$CUDAMEM" trace --annotation "$1" snapshot.bin >trace.txt || fail "trace"
    sed -n 's/.* = cudaMalloc([0-9]*, \([0-9]*\)\.0MiB)$/\1/p' trace.txt | awk '{ printf "%s%d", s, $1; s = "," }'
}

ranges_stand_where_they_were() {
    same "$PROGRAMS/nvtx" nested
    contains "as if nobody listened" "$(cat record.out)" "depth -2"
    expect "annotations" "$(annotations)" "START before own 0
START naïve 😀 own 1
START registered own 2
END naïve 😀 own 3
END registered own 4
MARK moment own 4
END before own 5"
}

ranges_are_a_key_for_filters() {
    same "$PROGRAMS/nvtx" nested
    for case in before:1,2,3,4,5 registered:3,4 'na.*ve:2,3' 'registered|na:2,3,4' nothing: moment:; do
        expect "within ${case%%:*}" "$(within "${case%%:*}")" "${case#*:}"
    done
    "$CUDAMEM" svg --annotation registered --memory -o picture.svg snapshot.bin >/dev/null || fail "svg"
    contains "blocks made within" "$(cat picture.svg)" "7.00 MiB selected"
    "$CUDAMEM" trace --annotation '(' snapshot.bin 2>err.txt
    expect "an expression that is none" "$?" 2
    [ -n "$("$CUDAMEM" trace --annotation before snapshot.bin@mark:moment 2>&1)" ] || fail "a mark of NVTX is a moment"
}

ranges_are_a_key_for_groups() {
    same "$PROGRAMS/nvtx" nested
    "$CUDAMEM" diff --group annotation --bytes snapshot.bin@start snapshot.bin >groups.txt || fail "diff"
    for row in "before 6291456" "registered 7340032" "na.*ve 2097152" "(in no range) 6291456"; do
        grep -q "^+*${row##* }[[:space:]].*${row% *}" groups.txt || fail "$row: $(cat groups.txt)"
    done
}

ranges_of_threads_and_of_the_process() {
    same "$PROGRAMS/nvtx" threads
    for thread in 0 1 2 3; do
        expect "within the range of thread $thread" "$(within "thread $thread")" $((thread + 1))
    done
    expect "within the range of the process" "$(within '^process$' | tr , '\n' | sort | tr -d '\n')" 1234
    expect "annotations" "$(annotations | wc -l)" 10
}

odd_ranges_are_taken_as_they_are() {
    same "$PROGRAMS/nvtx" odd
    expect "within the deepest" "$(within 'deep 39')" 1
    expect "within the outermost" "$(within '^xx*$')" 1,2,3
    expect "a name that is too long is cut" "$(annotations | sed -n 's/^START \(x*\) .*/\1/p' | tr -d '\n' | wc -c)" 1024
    expect "ranges that never end have no end" "$(annotations | grep -c '^END x')" 0
    expect "begun" "$(annotations | grep -c '^START deep')" 40
    expect "ended" "$(annotations | grep -c '^END deep')" 40
    # what opens before the first event is kept to a depth of 16
    same "$PROGRAMS/nvtx" odd early
    expect "within the outermost, early" "$(within '^xx*$')" 1,2,3
    expect "within one that is kept" "$(within 'deep 14')" 1
    expect "begun, early" "$(annotations | grep -c '^START deep')" 15
    expect "ended, early" "$(annotations | grep -c '^END deep')" 15
}

a_full_ring_of_annotations_counts_what_it_lost() {
    same "$PROGRAMS/nvtx" many 200000
    expect "the newest are there" "$(annotations | tail -2)" "START step 199999 own 1
END step 199999 own 2"
    kept=$(annotations | wc -l)
    [ "$kept" -gt 65000 ] && [ "$kept" -le 65536 ] || fail "kept: $kept"
    contains "lost" "$("$CUDAMEM" info snapshot.bin)" "settings.annotations_lost $((400000 - 65536))"
    expect "within the last" "$(within 'step 199999')" 1
}

a_child_inherits_open_ranges() {
    CUDAMEM_SIM_FORK=1
    export CUDAMEM_SIM_FORK
    plain "$PROGRAMS/nvtx" fork
    record -o snapshot.bin "$PROGRAMS/nvtx" fork
    cmp -s plain.out record.out || fail "it prints something else"
    for file in snapshot*.bin; do
        annotations "$file" | sort >found
        expect "ranges of $file" "$(grep -c '^START everywhere all 0$\|^START inherited own 0$' found)" 2
    done
    expect "processes" "$(ls snapshot*.bin | wc -l)" 2
}

another_tool_keeps_its_place() {
    NVTX_INJECTION64_PATH=/nowhere/libtool.so
    export NVTX_INJECTION64_PATH
    "$CUDAMEM" record --sim --env >env.txt
    lacks "environment" "$(cat env.txt)" NVTX_INJECTION64_PATH
    record sh -c 'echo "$NVTX_INJECTION64_PATH"'
    expect "what the program sees" "$(cat record.out)" /nowhere/libtool.so
    unset NVTX_INJECTION64_PATH
    "$CUDAMEM" record --sim --env >env.txt
    contains "environment" "$(cat env.txt)" "NVTX_INJECTION64_PATH=$PRELOAD"
    CUDAMEM_DISABLE=1
    export CUDAMEM_DISABLE
    same_output() { cmp -s plain.out record.out || fail "switched off, it prints something else"; }
    plain "$PROGRAMS/nvtx" nested
    record "$PROGRAMS/nvtx" nested
    same_output
}

annotations_go_into_every_format() {
    same "$PROGRAMS/nvtx" nested
    "$CUDAMEM" convert --to pickle -o out.pickle snapshot.bin 2>/dev/null || fail "convert"
    expect "in a pickle" "$("$CUDAMEM" convert --to json -o - out.pickle | tr -d ' \n' | grep -o '"name":"registered"' | wc -l)" 2
    "$CUDAMEM" convert --to json -o out.json snapshot.bin 2>/dev/null || fail "convert to JSON"
    contains "in JSON" "$(tr -d ' \n' <out.json)" '"stage":"START","name":"registered","device":0,"time_us":'
}

run_case "$1"
