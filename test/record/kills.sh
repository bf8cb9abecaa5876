#!/bin/sh
# Ended at any moment: what was recorded until then is there.  CUDAMEM_TEST_FULL=1: more of it.
. "$(dirname "$0")/lib.sh"

# kills COUNT STACKS OPTIONS...: programs under load, killed; of `record` with these options
kills() {
    count=$1
    stacks=$2
    shift 2
    [ -z "${CUDAMEM_TEST_FULL:-}" ] || count=$((count * 10))
    seed=${SEED:-$$}
    mkdir -m 700 rings
    "$CUDAMEM" record --sim=2:4GiB --stacks "$stacks" "$@" --env >env.txt || fail "no environment"
    "$OWN_PROGRAMS/kills" "$count" "$seed" "$stacks" "$work/rings" "$work/progress" "$OWN_PROGRAMS/load" "$CUDAMEM" \
        env $(cat env.txt) CUDAMEM_RING_FOLDER="$work/rings" "$OWN_PROGRAMS/load" "$work/progress" >kills.out 2>kills.err ||
        fail "$(cat kills.out) (SEED=$seed)"
    cat kills.out
}

killed_under_load_everything_that_returned_is_there() { kills 100 native; }
killed_under_load_with_a_ring_that_overwrites() { kills 60 native --max-entries 500; }
killed_under_load_without_stacks() { kills 40 none --max-entries 100000; }

# state_of PID: what ps --stale says of the ring file of a process
state_of() {
    "$CUDAMEM" ps --stale --json | sed -n "s/.*\"pid\": $1, .*\"state\": \"\([^\"]*\)\".*/\1/p"
}

the_command_killed_leaves_the_program_and_its_ring() {
    mkfifo go
    "$CUDAMEM" record --sim=2:4GiB sh -c "'$OWN_PROGRAMS/loop_when_told' go; echo \"ended \$?\" >ended" >record.out 2>record.err &
    command=$!
    for turn in $(seq 100); do
        ring=$(find "$TMPDIR" -name '*.ring')
        [ -n "$ring" ] && break
        sleep 0.1
    done
    kill -KILL $command
    wait $command 2>/dev/null
    pid=${ring##*/cudamem-}
    pid=${pid%%-*}
    expect "while it runs" "$(state_of "$pid")" "in use"
    expect "events of the one that runs" "$(events "$ring")" "segment_alloc 1048576"
    echo go >go
    for turn in $(seq 100); do [ -s ended ] && break; sleep 0.1; done
    expect "the program" "$(cat ended)" "ended 0"
    expect "output of the program" "$(cat record.out)" "loop_when_told: allocations=1001 frees=1000 bytes=2072576"
    expect "events after the command's end" "$(dump "$ring" | grep -c '^entry')" 2001
    contains "ended normally" "$("$CUDAMEM" info "$ring")" "processes.0.end_time"
    expect "when it is gone" "$(state_of "$pid")" "left over"
    "$CUDAMEM" ps --stale --remove >removed.txt || fail "ps --stale --remove"
    [ -e "$ring" ] && fail "it is not removed"
    return 0
}

run_case "$1"
