#!/bin/sh
# Programs that pool for themselves and tell of their pieces (include/cudamem/suballoc.h).
. "$(dirname "$0")/lib.sh"

pieces_are_blocks_of_their_segment() {
    same "$PROGRAMS/suballoc"
    expect "events" "$(events)" "segment_alloc 8388608,alloc 1048576,alloc 2097152,free_requested 1048576,\
free_completed 1048576,alloc 524288"
    expect "blocks" "$(dump | awk '$1 == "block" { print $2, $4 }')" "1048576 state=inactive
524288 state=active_allocated
2621440 state=inactive
2097152 state=active_allocated
2097152 state=inactive"
    contains "stack of a piece" "$(dump | grep '^entry alloc')" "stack=piece_taken;main"
    "$DUMP" snapshot.bin faults >faults.txt || fail "a state cannot be made"
    expect "faults" "$(grep '^faults' faults.txt)" "faults allocs=0 segments=0 overlaps=0 outside=0 inexact=0"
}

the_library_hears_of_them_too() {
    same "$EXAMPLES/example_suballoc"
    contains "its own snapshot" "$(cat record.out)" "3 blocks"
    contains "pieces" "$(events)" "alloc 1048576,alloc 2097152"
}

run_case "$1"
