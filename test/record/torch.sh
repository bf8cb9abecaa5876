#!/bin/sh
# Inside PyTorch: blocks by what its allocator reports, segments by the driver's calls, memory of others beside them.
. "$(dirname "$0")/lib.sh"

blocks() {
    dump "${1:-snapshot.bin}" | awk '
        $1 == "live" { printf "%s[%s", sep, $2; sep = " " }
        $1 == "block" { printf "%s%s%s", $4 == "state=inactive" ? " -" : " ", $2, $5 == "requested=?" ? "" : "!" }
        END { print "" }'
}

# no_faults FILE: the state at every moment agrees with the entries
no_faults() {
    "$DUMP" "${1:-snapshot.bin}" faults >faults.txt || fail "a state cannot be made"
    expect "faults" "$(grep '^faults' faults.txt)" "faults allocs=0 segments=0 overlaps=0 outside=0 inexact=0"
}

blocks_and_segments_are_both_recorded() {
    same "$PROGRAMS/torch" train
    expect "what the real function was told" "$(grep '^reported' record.out)" "reported: 6 4 0 2097664 -1"
    expect "events" "$(events | tr ',' '\n' | grep -v segment)" "alloc 3145728
alloc 1000
alloc 1024
alloc 512
alloc 4194304
alloc 2097152
free_requested 1024
free_completed 1024
free_requested 3145728
free_completed 3145728
free_requested 4194304
free_completed 4194304
alloc 20971520
free_requested 20971520
free_completed 20971520"
    expect "segments" "$(events | tr ',' '\n' | grep segment | tr '\n' ',')" "segment_alloc 2097152,segment_alloc 3145728,segment_alloc 1000,segment_alloc 20971520,segment_free 3145728,segment_alloc 20971520,segment_free 20971520,"
    expect "state" "$(blocks)" "[2097152 -1024 512 -2095616 [1000 1000! [20971520 -4194304 2097152 -14680064"
    expect "stacks of blocks" "$(dump | grep '^entry alloc' | grep -c 'stack=block_taken;train;main')" 5
    contains "numbers" "$(dump)" "peak=44040192 current=23068672 "
    contains "blocks' numbers" "$(dump)" " allocated=23069184,2097664 "
    no_faults
}

pages_under_one_block_are_one_segment() {
    same "$PROGRAMS/torch" expand
    expect "state" "$(blocks)" "[4194304 -1048576 2097152 1048576"
    expect "events" "$(events)" "segment_map 2097152,segment_map 2097152,segment_map 2097152,alloc 6291456,\
free_requested 6291456,free_completed 6291456,segment_map 2097152,alloc 2097152,alloc 1048576,alloc 4194304,\
free_requested 4194304,free_completed 4194304,segment_unmap 2097152,segment_unmap 2097152"
    no_faults
}

streams_are_those_of_the_thread() {
    same "$PROGRAMS/torch" streams
    expect "streams" "$(dump | awk '/^entry (alloc|free_requested)/ { print $2, $3, $0 }' |
        sed 's/ entry.* stream=\([^ ]*\).*/ \1/')" "alloc 512 0
alloc 1024 77
free_requested 512 0
free_requested 1024 77"
}

refusals_of_the_driver_are_steps_to_the_allocators_own() {
    same "$PROGRAMS/torch" oom
    expect "events" "$(events)" "oom 1099511627776,oom 1099511627776,oom 3584"
    expect "what the real function was told" "$(grep '^reported' record.out)" "reported: 0 0 2 0 0"
    contains "count" "$(dump)" "ooms=2 "
    "$CUDAMEM" convert --to json -o out.json snapshot.bin || fail "convert"
    expect "entries outside" "$(grep -o '"outside"' out.json | wc -l | tr -d ' ')" 1
    "$CUDAMEM" info snapshot.bin@oom2 >info.out || fail "there is no second one"
    "$CUDAMEM" info snapshot.bin@oom3 >info.out 2>&1 && fail "there is a third one"
    return 0
}

blocks_that_the_ring_forgot_left_their_mark() {
    record --max-entries 100 "$PROGRAMS/torch" loop 1000
    expect "exit status" "$status" 0
    contains "entries lost" "$(dump)" " lost="
    expect "state" "$(blocks)" "[5242880 5242880! [20971520 -20971520"
    expect "the freed one was no block" "$(dump | grep '^entry' | tail -1 | cut -d' ' -f2,3)" "segment_free 20971520"
    expect "nor had its memory one" "$(dump | grep -c '^entry free_completed 20971520')" 0
    no_faults
}

blocks_of_a_library_in_its_own_scope() {
    same "$PROGRAMS/torch_open"
    expect "what the real function was told" "$(grep '^reported' record.out)" "reported: 1 1536"
    expect "state" "$(blocks)" "[2097152 1536 -2095616"
}

the_command_tells_whether_there_were_blocks() {
    record "$PROGRAMS/torch" train
    contains "info" "$("$CUDAMEM" info snapshot.bin)" "framework_blocks recorded"
    contains "segments and blocks" "$("$CUDAMEM" info --json snapshot.bin)" '"segments_are_blocks": false'
    "$CUDAMEM" summary snapshot.bin >summary.out || fail "summary"
    "$CUDAMEM" segsum snapshot.bin >segsum.out || fail "segsum"
    "$CUDAMEM" trace snapshot.bin >trace.out || fail "trace"
    record -o plain.bin "$PROGRAMS/driver_dlsym"
    lacks "info without a framework" "$("$CUDAMEM" info plain.bin)" "framework_blocks"
    contains "segments alone" "$("$CUDAMEM" info --json plain.bin)" '"segments_are_blocks": true'
    cp "$OWN_PROGRAMS/libdlsym_wrapper.so" libc10_cuda.so
    LD_PRELOAD=$work/libc10_cuda.so
    export LD_PRELOAD
    record -o silent.bin "$PROGRAMS/driver_dlsym"
    unset LD_PRELOAD
    contains "info of one that reports nothing" "$("$CUDAMEM" info silent.bin)" "framework_blocks none seen"
}

a_child_that_lets_go_leaves_nothing() {
    same "$PROGRAMS/torch" fork
    set -- snapshot*.bin
    expect "files" "$#" 1
    expect "events" "$(events)" "segment_alloc 2097152,alloc 512"
}

a_program_that_becomes_another_keeps_its_blocks() {
    same "$PROGRAMS/torch" exec "$PROGRAMS/no_cuda"
    expect "state" "$(blocks)" "[2097152 -1024 512 -2095616 [1000 1000! [20971520 -4194304 2097152 -14680064"
}

switched_off_they_pass_on() {
    CUDAMEM_DISABLE=1
    export CUDAMEM_DISABLE
    plain "$PROGRAMS/torch" train
    record "$PROGRAMS/torch" train
    expect "exit status" "$status" 0
    cmp -s plain.out record.out || fail "it prints something else"
    [ -e snapshot.bin ] && fail "there is an output file"
    return 0
}

two_copies_call_the_real_one_once() {
    mkdir copy && cp "$PRELOAD" copy/
    plain "$PROGRAMS/torch" train
    LD_PRELOAD=$work/copy/libcudamem-preload.so:$PRELOAD LD_LIBRARY_PATH=$SIM timeout 60 "$PROGRAMS/torch" train \
        >record.out 2>record.err
    expect "exit status" "$?" 0
    cmp -s plain.out record.out || fail "it prints something else"
}

run_case "$1"
