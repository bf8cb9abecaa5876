#!/bin/sh
# What processes go through, and the recording with them: libraries that go, threads that die, small stacks, limits.
. "$(dirname "$0")/lib.sh"

libraries_that_go_are_told_apart() {
    same "$OWN_PROGRAMS/unloaded" "$OWN_PROGRAMS/libunloaded_first.so" "$OWN_PROGRAMS/libunloaded_second.so"
    contains "the case that is to be tested" "$(cat record.out)" "at the place of the last one: 5"
    for library in first second; do
        expect "stacks through the $library" "$(dump | grep '^entry segment_alloc' | grep -c "stack=.*call_back;${library}_call;use_library;main")" 3
    done
    expect "the order" "$(dump | sed -n 's/^entry segment_alloc.*;\([a-z]*\)_call;.*/\1/p' | tr '\n' ' ')" \
        "first second first second first second "
}

run_case "$1"
