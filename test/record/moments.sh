#!/bin/sh
# Moments: states kept while the program runs, and a program talked to while it is recorded.
. "$(dirname "$0")/lib.sh"

MIB=1048576
GIB=1073741824

# start OPTIONS: the steered program under the recorder; $command and $pid
start() {
    rm -f to from
    mkfifo to from
    "$CUDAMEM" record --sim=1:4GiB "$@" "$PROGRAMS/steered" <to >from 2>record.err &
    command=$!
    exec 3>to 4<from
    read -r word pid <&4
    expect "its first line" "$word" pid
}

# tell LINE [ANSWER]
tell() {
    echo "$1" >&3
    read -r answer <&4
    [ $# -lt 2 ] && set -- "$1" ok
    expect "answer to '$1'" "$answer" "$2"
}

# finish: the program reads the end of its input; $status is the command's
finish() {
    exec 3>&-
    cat <&4 >/dev/null
    exec 4<&-
    wait $command
    status=$?
}

ctl() {
    "$CUDAMEM" ctl "$@" >ctl.out 2>ctl.err || fail "ctl $*: status $?"
}

# wait_for FILE
wait_for() {
    for turn in $(seq 300); do
        [ -f "$1" ] && return
        sleep 0.05
    done
    fail "$1 does not come: $(ls)"
}

ring_of() {
    ls tmp/cudamem-*/record-*/cudamem-"$1"-*.ring | grep -v '\.oom\|\.signal' | head -1
}

# Case 83: the program ignores the failure and then kills itself.
case_83_out_of_memory_is_kept_through_a_kill() {
    start -o snapshot.bin --on-oom snapshot
    tell "alloc a $MIB"
    tell "refused $((9 * GIB))" "result 2"
    tell "alloc b $((2 * MIB))"
    tell "refused $((8 * GIB))" "result 2"
    tell "free a"
    wait_for snapshot.oom2.bin
    kill -9 "$pid"
    finish
    expect "status" "$status" 137
    expect "the first" "$(events snapshot.oom1.bin)" "segment_alloc $MIB,oom $((9 * GIB))"
    expect "what lived then" "$(live snapshot.oom1.bin)" "$MIB"
    dump snapshot.oom1.bin | grep '^entry oom' | grep -q 'stack=.*steered_refused;.*main' || fail "no stack: $(cat dump.txt)"
    expect "the second" "$(events snapshot.oom2.bin)" "segment_alloc $MIB,oom $((9 * GIB)),segment_alloc $((2 * MIB)),oom $((8 * GIB))"
    expect "what lived then" "$(live snapshot.oom2.bin)" $((3 * MIB))
    expect "the end" "$(live snapshot.bin)" $((2 * MIB))
    contains "the closing lines" "$(cat record.err)" "states kept on the way: snapshot.oom1.bin and 1 more"
    expect "nothing is left over" "$(find tmp -type f | wc -l)" 0
    "$CUDAMEM" info snapshot.oom1.bin@oom >/dev/null || fail "no moment @oom"
}

# Killed with the recorder: the copies are ring files, listed and readable.
copies_outlive_the_recorder() {
    start
    kill -STOP $command
    tell "alloc a $MIB"
    tell "refused $((9 * GIB))" "result 2"
    tell "alloc b $((2 * MIB))"
    kill -9 $command "$pid"
    exec 3>&- 4<&-
    wait $command 2>/dev/null
    copy=$(find tmp -name '*.oom1.ring')
    [ -f "$copy" ] || fail "no copy: $(find tmp)"
    expect "mode" "$(stat -c %a "$copy")" 600
    expect "its entries" "$(events "$copy")" "segment_alloc $MIB,oom $((9 * GIB))"
    expect "what lived" "$(live "$copy")" "$MIB"
    for turn in $(seq 100); do "$CUDAMEM" ps --stale >stale.txt && grep -q 'left over.*oom1' stale.txt && break; sleep 0.05; done
    contains "the list" "$(cat stale.txt)" ".oom1.ring"
    contains "it says what it is" "$("$CUDAMEM" info "$copy")" "out of memory 1"
    "$CUDAMEM" ps --stale --remove >/dev/null
    expect "removed" "$(find tmp -type f | wc -l)" 0
}

# Not more than three, and none if nobody wants any.
out_of_memories_are_kept_three_times() {
    start
    for i in 1 2 3 4 5; do tell "refused $((i * GIB + 8 * GIB))" "result 2"; done
    finish
    expect "files" "$(ls snapshot.oom*)" "$(printf 'snapshot.oom1.bin\nsnapshot.oom2.bin\nsnapshot.oom3.bin')"
    expect "the third" "$(events snapshot.oom3.bin)" "oom $((9 * GIB)),oom $((10 * GIB)),oom $((11 * GIB))"
    rm -f snapshot*
    start --on-oom ignore
    tell "refused $((9 * GIB))" "result 2"
    finish
    expect "files" "$(ls snapshot*)" snapshot.bin
}

# An allocator gives back what it holds and asks again: what it then says is the failure.
an_allocators_word_is_the_failure() {
    "$CUDAMEM" record --sim=1:4GiB "$PROGRAMS/torch" full >record.out 2>record.err || fail "status $?"
    for file in snapshot.oom*.bin; do
        expect "last entry of $file" "$(dump "$file" | grep '^entry' | tail -1 | cut -d' ' -f2)" oom
        dump "$file" | grep '^entry' | tail -1 | grep -q 'call= ' || fail "$file: the driver's word: $(tail -1 dump.txt)"
    done
    expect "files" "$(ls snapshot.oom*)" "$(printf 'snapshot.oom1.bin\nsnapshot.oom2.bin')"
}

# No room for the copy: one line, and the program goes on.
a_full_disk_costs_only_the_copy() {
    mkdir -m 700 small
    mount -t tmpfs -o size=22m,mode=700 tmpfs small 2>/dev/null || skip "no mount here"
    "$CUDAMEM" record --sim=1:4GiB --env >env.txt
    mkfifo to from
    env $(cat env.txt) CUDAMEM_RING_FOLDER="$work/small" "$PROGRAMS/steered" <to >from 2>program.err &
    command=$!
    exec 3>to 4<from
    read -r word pid <&4
    tell "alloc a $MIB"
    room=$(($(stat -f -c '%a * %S' small)))
    head -c $((room > 65536 ? room - 65536 : 1)) /dev/zero >small/filler
    tell "refused $((9 * GIB))" "result 2"
    tell "refused $((10 * GIB))" "result 2"
    finish
    left=$(ls small)
    umount small
    expect "status" "$status" 0
    expect "the line, once" "$(grep -c 'the state of this moment cannot be kept: No space left on device' program.err)" 1
    lacks "half a copy" "$left" oom
}

a_signal_keeps_the_state() {
    start --signal USR2
    tell "alloc a $MIB"
    kill -USR2 "$pid"
    wait_for snapshot.signal1.bin
    tell "alloc b $MIB"
    kill -USR2 $command
    wait_for snapshot.signal2.bin
    tell "free a"
    finish
    expect "status" "$status" 0
    expect "the first" "$(events snapshot.signal1.bin)" "segment_alloc $MIB"
    expect "the second" "$(events snapshot.signal2.bin)" "segment_alloc $MIB,segment_alloc $MIB"
    expect "the end" "$(live)" "$MIB"
}

# Handlers of the program's: one that is there before the first event, one set later, one that calls what it found.
handlers_of_the_program_are_called_too() {
    start --signal SIGUSR2
    tell handler
    tell "alloc a $MIB"
    tell "raise 12"
    tell seen "seen 1"
    wait_for snapshot.signal1.bin
    tell chain
    tell "raise 12"
    tell seen "seen 2"
    wait_for snapshot.signal2.bin
    finish
    expect "status" "$status" 0
    expect "files" "$(ls snapshot.signal*)" "$(printf 'snapshot.signal1.bin\nsnapshot.signal2.bin')"
}

# What the program sets later ends nobody, from the moment on that it sets it.
what_the_program_sets_later_ends_nobody() {
    start --signal USR2
    tell "alloc a $MIB"
    tell default
    tell "raise 12"
    wait_for snapshot.signal1.bin
    tell once
    tell "raise 12"
    tell "raise 12"
    tell seen "seen 1"
    finish
    expect "status" "$status" 0
    expect "files" "$(ls snapshot.signal* | wc -l)" 3
}

# Whatever it sets, it is told of that, and the handlers see what they would see.
the_program_is_told_what_it_set() {
    printf '%s\n' "alloc a $MIB" action ignore action handler action 'raise 12' chain action 'raise 12' once action 'raise 12' \
        action plain action 'raise 12' nest action 'raise 12' seen handler vfork action 'raise 12' seen >lines
    LD_LIBRARY_PATH=$SIM "$PROGRAMS/steered" <lines >plain.out || fail "alone: status $?"
    "$CUDAMEM" record --sim --signal USR2 "$PROGRAMS/steered" <lines >record.out 2>record.err || fail "status $?"
    expect "answers" "$(grep -v ^pid record.out)" "$(grep -v ^pid plain.out)"
    contains "handlers ran" "$(cat record.out)" "seen 8"
}

# Before there is a recording the signal does nothing.
a_signal_before_the_first_event_ends_nobody() {
    start --signal RTMIN+3
    kill -s RTMIN+3 "$pid"
    tell "alloc a $MIB"
    finish
    expect "status" "$status" 0
    expect "files" "$(ls snapshot*)" snapshot.bin
}

states_every_so_often() {
    start -o s-%n.bin --every 100ms
    tell "alloc a $MIB"
    for turn in $(seq 300); do [ "$(ls s-steered.every*.bin 2>/dev/null | wc -l)" -ge 2 ] && break; sleep 0.05; done
    finish
    for file in s-steered.every*.bin; do
        expect "$file" "$(events "$file")" "segment_alloc $MIB"
        number=${file#*every}
        contains "$file says which it is" "$("$CUDAMEM" info "$file")" "every ${number%.bin}"
    done
    [ "$(ls s-steered.every*.bin | wc -l)" -ge 2 ] || fail "files: $(ls)"
    expect "old ones" "$(ls | grep -c old)" 0
}

# What a program's children keep has their number; a second program in its place counts on.
processes_are_told_apart() {
    export CUDAMEM_SIM_FORK=1
    start
    echo "fork $MIB" >&3
    read -r word child <&4
    tell "refused $((9 * GIB))" "result 2"
    wait_for snapshot.oom1.bin
    echo again >&3
    read -r word again <&4
    expect "the same process" "$again" "$pid"
    tell "alloc a $MIB"
    tell "refused $((8 * GIB))" "result 2"
    wait_for snapshot.oom2.bin
    ctl "$child" snapshot -o child.bin
    expect "the child" "$(live child.bin)" "$MIB"
    kill "$child"
    for turn in $(seq 100); do grep -qs 'State:.[^Z]' "/proc/$child/status" || break; sleep 0.05; done
    finish
    [ -f "snapshot.$child.bin" ] || fail "the child's: $(ls)"
    expect "the first" "$(events snapshot.oom1.bin)" "oom $((9 * GIB))"
    expect "the second" "$(events snapshot.oom2.bin)" "segment_alloc $MIB,oom $((8 * GIB))"
}

# Of a shell's child, which is the only one that is recorded.
the_only_process_has_the_plain_name() {
    "$CUDAMEM" record --sim=1:4GiB sh -c "'$PROGRAMS/oom'; exit 3" >record.out 2>record.err
    expect "status" "$?" 3
    expect "files" "$(ls snapshot*)" "$(printf 'snapshot.bin\nsnapshot.oom1.bin')"
}

ctl_snapshots_have_names_of_their_own() {
    start -o x-%n.bin
    tell "alloc a $MIB"
    ctl "$pid" snapshot
    contains "it says so" "$(cat ctl.err)" "wrote x-steered.1.bin: 1 entry of process $pid"
    tell "alloc b $MIB"
    ctl "$pid" snapshot
    ctl "$pid" snapshot -o other
    cp x-steered.1.bin kept
    "$CUDAMEM" ctl "$pid" snapshot -o - >piped 2>/dev/null || fail "to a pipe"
    finish
    expect "the first" "$(events kept)" "segment_alloc $MIB"
    expect "the second" "$(events x-steered.2.bin)" "segment_alloc $MIB,segment_alloc $MIB"
    expect "by name" "$(events other)" "segment_alloc $MIB,segment_alloc $MIB"
    expect "piped" "$(events piped)" "segment_alloc $MIB,segment_alloc $MIB"
    dump x-steered.1.bin | grep '^entry' | grep -q 'steered_alloc;.*main' || fail "no names"
}

marks_are_moments() {
    start
    tell "alloc a $MIB"
    ctl "$pid" mark first
    tell "alloc b $((2 * MIB))"
    ctl "$pid" mark "second one"
    ctl "$pid" mark 'a\b@peak'
    tell "free a"
    ctl "$pid" status --json
    contains "status" "$(cat ctl.out)" '"second one"'
    finish
    for place in first:1 "second one":3 'a\b@peak':3 end:2; do
        moment=mark:${place%:*}
        [ "$moment" = mark:end ] && moment=end
        expect "$moment" "$("$CUDAMEM" info --json "snapshot.bin@$moment" | python3 -c 'import json, sys
print(json.load(sys.stdin)["devices"][0]["allocated"] >> 20)')" "${place##*:}"
    done
    "$CUDAMEM" info snapshot.bin@mark:third 2>info.err
    expect "status" "$?" 3
    contains "what there is" "$(cat info.err)" "there are: first, second one, a\b@peak"
    "$CUDAMEM" convert --to bin snapshot.bin -o again.bin
    "$CUDAMEM" info again.bin@mark:first >/dev/null || fail "the mark is lost on the way"
    "$CUDAMEM" convert --to pickle snapshot.bin -o again.pickle
    "$CUDAMEM" info again.pickle@mark:first >/dev/null || fail "the mark is lost in a pickle"
}

# Without entries in between, what lives stays right, at every moment.
paused_it_follows_what_lives() {
    start
    tell "alloc a $MIB"
    tell "alloc b $((2 * MIB))"
    ctl "$pid" pause
    contains "status" "$("$CUDAMEM" ctl "$pid" status)" paused
    tell "free a"
    tell "alloc c $((4 * MIB))"
    tell "alloc d $((8 * MIB))"
    tell "churn 10"
    ctl "$pid" resume
    tell "alloc e $((16 * MIB))"
    tell "free d"
    tell "free b"
    finish
    expect "what lives" "$(live)" $((20 * MIB))
    expect "peak" "$(dump | sed -n 's/^device .* peak=\([0-9]*\) .*/\1/p')" $((30 * MIB))
    expect "faults" "$(dump >/dev/null; "$DUMP" snapshot.bin faults | tail -1)" "faults allocs=0 segments=0 overlaps=0 outside=0 inexact=0"
    expect "memory that came meanwhile has no stack" "$(dump | grep '^entry segment_alloc' | grep -c 'stack=none')" 2
    expect "nothing of what came and went" "$(events | tr , '\n' | grep -c ' 4096$')" 0
    contains "info says so" "$("$CUDAMEM" info snapshot.bin)" "22 events came while recording was paused"
    "$CUDAMEM" replay --verify snapshot.bin >replay.out 2>&1
    lacks "verify" "$(cat replay.out)" "exact: yes"
}

# Case 29: begun, stopped, begun again.
case_29_a_second_start_has_only_what_came_after_it() {
    start --start-paused
    tell "alloc a $MIB"
    ctl "$pid" resume
    tell "alloc b $((2 * MIB))"
    ctl "$pid" snapshot -o one.bin
    ctl "$pid" pause
    tell "alloc c $((4 * MIB))"
    ctl "$pid" resume --fresh
    expect "what it says" "$(cat ctl.err)" "cudamem: process $pid is being recorded anew"
    tell "alloc d $((8 * MIB))"
    tell "free a"
    ctl "$pid" snapshot -o two.bin
    finish
    expect "the first" "$(events one.bin)" "segment_alloc $((2 * MIB))"
    expect "and what was there" "$(live one.bin)" $((3 * MIB))
    expect "the second" "$(events two.bin)" "segment_alloc $((8 * MIB)),segment_free $MIB"
    expect "and what was there" "$(live two.bin)" $((14 * MIB))
    expect "older blocks" "$(dump two.bin | grep '^block' | grep -c 'before=1')" 2
    expect "the beginning" "$("$CUDAMEM" info --json two.bin@start | python3 -c 'import json, sys
print(json.load(sys.stdin)["devices"][0]["allocated"] >> 20)')" 7
    expect "stacks of what was recorded then" "$(dump two.bin | grep '^live 2097152' | grep -c steered_alloc)" 1
    expect "none is called lost" "$(dump two.bin | sed -n 's/^device .* lost=\([0-9]*\) .*/\1/p')" 0
}

# Nobody resumed it: the last line says how that is done, not that nothing could be seen.
paused_to_the_end_the_last_line_says_so() {
    start --start-paused
    tell "alloc a $MIB"
    finish
    expect "what it held" "$(live)" "$MIB"
    contains "the last line" "$(tail -1 record.err)" "next: cudamem ctl PID resume while the program runs"
    contains "the first" "$(cat record.err)" "recorded 0 events in"
}

# A failure is recorded, with its stack, even then.
paused_it_tells_of_failures() {
    start --start-paused
    tell "alloc a $MIB"
    tell "refused $((9 * GIB))" "result 2"
    finish
    expect "events" "$(events)" "oom $((9 * GIB))"
    dump | grep '^entry oom' | grep -q 'steered_refused;' || fail "no stack"
    expect "what lived" "$(live snapshot.oom1.bin)" "$MIB"
}

# A free that the driver refuses, in all ways to be paused.
paused_a_refused_free_is_undone() {
    CUDAMEM_SIM_FAULTS=cuMemFree_v2:1=1 start
    tell "alloc a $MIB"
    ctl "$pid" pause
    echo "churn 1" >&3
    finish
    expect "status" "$status" 99
    expect "what lives" "$(live)" $((MIB + 4096))
    expect "events" "$(events)" "segment_alloc $MIB,segment_alloc 4096"
}

ctl_refuses_what_it_cannot_do() {
    "$CUDAMEM" ctl 999999999 status 2>ctl.err
    expect "no process" "$?" 3
    contains "line" "$(cat ctl.err)" "cudamem: process 999999999: there is no such process"
    "$CUDAMEM" ctl $$ pause 2>ctl.err
    expect "not recorded" "$?" 3
    contains "line" "$(cat ctl.err)" "it is not being recorded"
    start
    "$CUDAMEM" ctl "$pid" pause 2>ctl.err
    expect "no event yet" "$?" 3
    tell "alloc a $MIB"
    echo "fork 0" >&3
    read -r word child <&4
    "$CUDAMEM" ctl "$child" pause 2>ctl.err
    expect "a child without an event" "$?" 3
    contains "line" "$(cat ctl.err)" "it was forked"
    contains "the parent goes on" "$("$CUDAMEM" ctl "$pid" status)" recording
    ring=$(ring_of "$pid")
    printf '\001' | dd of="$ring" bs=1 seek=8 conv=notrunc 2>/dev/null
    "$CUDAMEM" ctl "$pid" pause 2>ctl.err
    expect "an older version" "$?" 3
    contains "line" "$(cat ctl.err)" "another version"
    kill "$child"
    exec 3>&- 4<&-
    wait $command
}

ctl_of_other_users_is_refused() {
    other=1 as=
    if [ "$(id -u)" = 0 ]; then
        as="setpriv --reuid 65534 --clear-groups"
        other=$$
        $as "$CUDAMEM" version >/dev/null 2>&1 || skip "no other user here"
    fi
    $as "$CUDAMEM" ctl $other pause 2>ctl.err
    expect "status" "$?" 3
    contains "line" "$(cat ctl.err)" "it is a process of another user"
}

ctl_finds_the_file_of_a_program_that_became_another() {
    start
    tell "alloc a $MIB"
    echo again >&3
    read -r word again <&4
    tell "alloc b $((2 * MIB))"
    ctl "$pid" snapshot -o now.bin
    expect "its events" "$(events now.bin)" "segment_alloc $((2 * MIB))"
    finish
}

# Marks from many at once: each has a place, and the last ones find none.
marks_find_their_places() {
    start
    tell "alloc a $MIB"
    for turn in $(seq 64); do
        for i in 1 2 3 4; do "$CUDAMEM" ctl "$pid" mark "m$turn-$i" 2>/dev/null & marks="${marks:-} $!"; done
        wait $marks
        marks=
    done
    "$CUDAMEM" ctl "$pid" mark onemore 2>ctl.err
    expect "status" "$?" 3
    contains "line" "$(cat ctl.err)" "all 256 places for marks are taken"
    expect "places" "$("$CUDAMEM" ctl "$pid" status | grep -c '[[:blank:]]m[0-9]*-[0-9]$')" 256
    finish
    "$CUDAMEM" info snapshot.bin@mark:m64-4 >/dev/null || fail "the last is not there"
}

settings_of_moments_are_checked() {
    for words in "--signal KILL" "--signal SEGV" "--signal NONE" "--signal 0" "--signal 32" "--signal 33" "--signal 99" "--every 30" "--every 0s" "--every 1ms" "--every -5s" "--every x" "--on-oom perhaps" "--every 1s --env"; do
        "$CUDAMEM" record --sim $words true 2>record.err
        expect "$words" "$?" 2
        expect "lines of $words" "$(grep -c . record.err)" 1
    done
    expect "nothing ran" "$(ls | grep -c snapshot)" 0
}

run_case "$1"
