#!/bin/sh
# What users reported of other recorders, by the numbers of the collection: each must hold here.
. "$(dirname "$0")/lib.sh"

case_8_ring_that_wrapped_says_so() {
    record --max-entries 1000 "$PROGRAMS/loop" 750
    expect "exit status" "$status" 0
    device=$(dump | grep '^device 0 ')
    contains "capacity" "$device" " max=1000 "
    contains "entries kept" "$device" " entries=1000 "
    contains "entries lost" "$device" " lost=500 "
    contains "closing lines" "$(cat record.err)" "500 older ones lost"
    expect "the newest are kept" "$(dump | grep '^entry' | tail -1 | cut -d' ' -f2)" segment_free
}

case_14_no_cuda_call_gives_an_empty_snapshot() {
    same "$PROGRAMS/no_cuda" a b c
    expect "exit status" "$status" 3
    expect "events" "$(events)" ""
    expect "live at the end" "$(live)" 0
    contains "process" "$(dump)" "status=768 "
}

case_27_a_free_has_the_stack_of_the_free() {
    record "$PROGRAMS/sites"
    dump >/dev/null
    contains "where it was taken" "$(grep '^entry segment_alloc' dump.txt)" "site_alloc;"
    contains "where it was given back" "$(grep '^entry segment_free' dump.txt)" "site_free;"
    lacks "where it was given back" "$(grep '^entry segment_free' dump.txt)" "site_alloc"
    printf '%s\n' 'alloc a 1048576' | record "$PROGRAMS/steered"
    contains "the block" "$(dump | grep '^live')" "steered_alloc;"
}

case_28_stacks_change_nothing_but_stacks() {
    record -o with.bin "$PROGRAMS/sites"
    record -o without.bin --stacks none "$PROGRAMS/sites"
    [ -n "$(events with.bin)" ] || fail "nothing was recorded"
    expect "sizes and order" "$(events without.bin)" "$(events with.bin)"
    expect "entries with a stack" "$(dump without.bin | grep '^entry' | grep -vc 'stack=\(none\)\{0,1\}$')" 0
    contains "stacks" "$(dump with.bin)" "site_alloc;"
}

case_34_dlsym_of_other_names_is_untouched() {
    mkdir -p "odd place/tree"; cp "$CUDAMEM" "$PRELOAD" "$FORWARD" "odd place/tree/" 2>/dev/null
    mkdir odd-place && cp "$CUDAMEM" "$PRELOAD" "$FORWARD" odd-place/
    LD_LIBRARY_PATH=$SIM
    export LD_LIBRARY_PATH
    "$OWN_PROGRAMS/names" libcuda.so.1 >plain.out || fail "plain run"
    odd-place/cudamem record "$OWN_PROGRAMS/names" libcuda.so.1 >record.out 2>record.err || fail "recorded run"
    grep -v ' wrapped ' plain.out >plain.others
    grep -v ' wrapped ' record.out >record.others
    diff plain.others record.others >&2 || fail "the answers for other names changed"
    [ "$(grep -c . plain.others)" -ge 12 ] || fail "the program asked for too few names"
    expect "wrapped names of the plain run" "$(grep -c ' wrapped .*libcudamem' plain.out)" 0
    expect "wrapped names of the recorded run" "$(grep -c ' wrapped .*libcudamem-preload' record.out)" \
        "$(grep -c ' wrapped ' record.out)"
    # LD_PRELOAD cannot name a path with a space: said before anything starts
    "odd place/tree/cudamem" record true 2>space.err
    expect "exit status from a path with a space" "$?" 125
    contains "message" "$(cat space.err)" "space"
}

case_35_disabled_hooks_pass_everything_through() {
    CUDAMEM_DISABLE=1
    export CUDAMEM_DISABLE
    plain "$PROGRAMS/driver_dlsym"
    record "$PROGRAMS/driver_dlsym"
    expect "exit status" "$status" 0
    cmp -s plain.out record.out || fail "it prints something else"
    [ -e snapshot.bin ] && fail "there is an output file"
    LD_PRELOAD=$PRELOAD LD_LIBRARY_PATH=$SIM "$PROGRAMS/driver_linked" >direct.out || fail "direct preload"
    [ -z "$(find "$TMPDIR" -name '*.ring*')" ] || fail "a ring file was made"
    contains "dlsym answers" "$(LD_PRELOAD=$PRELOAD LD_LIBRARY_PATH=$SIM "$OWN_PROGRAMS/names" libcuda.so.1)" "handle:cuInit wrapped libcuda.so.1"
}

case_35_beside_another_dlsym_wrapper() {
    for order in before after; do
        plain "$PROGRAMS/driver_dlsym"
        LD_PRELOAD=$OWN_PROGRAMS/libdlsym_wrapper.so
        export LD_PRELOAD
        if [ $order = after ]; then # theirs first: it was there when our list was made
            "$CUDAMEM" record --sim --env >env.txt
            unset LD_PRELOAD
            list=$(sed -n 's/^LD_PRELOAD=//p' env.txt)
            env $(grep -v '^LD_PRELOAD=' env.txt) CUDAMEM_RING_FOLDER= \
                LD_PRELOAD="$OWN_PROGRAMS/libdlsym_wrapper.so:$list" "$PROGRAMS/driver_dlsym" >record.out 2>record.err
            status=$?
            ring=$(find "$TMPDIR" -name '*.ring' | head -1)
            [ -n "$ring" ] || fail "theirs first: no ring"
            expect "theirs first: events" "$(events "$ring")" "$three_events"
        else
            timeout 60 "$CUDAMEM" record --sim "$PROGRAMS/driver_dlsym" >record.out 2>record.err
            status=$?
            check_three
        fi
        unset LD_PRELOAD
        expect "exit status, $order" "$status" 0
        cmp -s plain.out record.out || fail "$order: it prints something else: $(diff plain.out record.out)"
        contains "the other wrapper worked, $order" "$(cat record.err)" "dlsym_wrapper: "
    done
}

case_35_two_recorders_nested() {
    plain "$PROGRAMS/driver_dlsym"
    timeout 60 "$CUDAMEM" record --sim -o outer.bin "$CUDAMEM" record --sim -o inner.bin "$PROGRAMS/driver_dlsym" \
        >record.out 2>record.err
    expect "exit status" "$?" 0
    cmp -s plain.out record.out || fail "it prints something else"
    expect "events of the inner one" "$(events inner.bin)" "$three_events"
    expect "events of the outer one" "$(events outer.bin)" ""
    expect "its line" "$(grep -c 'this is itself being recorded: the events of .*driver_dlsym go to' record.err)" 1
}

case_35_two_copies_of_the_recorder_at_once() {
    mkdir copy && cp "$PRELOAD" copy/
    plain "$PROGRAMS/driver_dlsym"
    LD_PRELOAD=$work/copy/libcudamem-preload.so:$PRELOAD LD_LIBRARY_PATH=$SIM timeout 60 "$PROGRAMS/driver_dlsym" \
        >record.out 2>record.err
    expect "exit status" "$?" 0
    cmp -s plain.out record.out || fail "it prints something else"
}

case_36_two_recordings_of_one_name_never_merge() {
    record "$PROGRAMS/driver_dlsym"
    record "$PROGRAMS/loop" 2
    expect "new file" "$(events)" "segment_alloc 1048576,segment_free 1048576,segment_alloc 1048576,segment_free 1048576"
    expect "old file" "$(events snapshot.bin.old)" "$three_events"
    record -o 'run.%p.bin' "$PROGRAMS/loop" 1
    record -o 'run.%p.bin' "$PROGRAMS/loop" 1
    set -- run.*.bin
    expect "files with the process in their name" "$#" 2
    "$CUDAMEM" record --sim -o both.bin "$PROGRAMS/loop" 3 >/dev/null 2>&1 &
    "$CUDAMEM" record --sim -o both.bin "$PROGRAMS/loop" 3 >/dev/null 2>&1
    wait
    expect "events of one of two at once" "$(dump both.bin | grep -c '^entry')" 6
}

case_37_a_helper_call_that_fails_loses_nothing() {
    CUDAMEM_SIM_FAULTS='cuCtxGetDevice:1+=1,cuDeviceGetName:1+=1,cuDeviceGetUuid_v2:1+=1,cuDeviceTotalMem_v2:1+=1,cuMemGetInfo_v2:1+=1'
    CUDAMEM_SIM=1:4GiB
    export CUDAMEM_SIM_FAULTS CUDAMEM_SIM
    record "$PROGRAMS/async"
    expect "exit status" "$status" 0
    expect "allocations" "$(dump | grep -c '^entry segment_alloc')" 4
    expect "live at the end" "$(live)" 0
    record "$PROGRAMS/oom"
    expect "exit status" "$status" 0
    expect "free bytes are not known" "$(dump | grep '^entry oom' | grep -c 'address=18446744073709551615')" 1
}

case_38_running_total_is_10_20_30_MiB() {
    record "$PROGRAMS/loop" 3 10485760 3
    expect "running total" "$(dump | awk '$2 == "segment_alloc" { t += $3; printf "%s%d", s, t; s = "," }')" \
        "10485760,20971520,31457280"
    contains "peak" "$(dump)" "peak=31457280 "
}

case_39_no_driver_call_during_a_capture() {
    same "$PROGRAMS/graph"
    contains "output" "$(cat record.out)" "during capture"
}

case_40_memory_info_is_the_drivers() {
    CUDAMEM_SIM=5GiB,7GiB,1234567KiB
    export CUDAMEM_SIM
    same "$OWN_PROGRAMS/meminfo"
    [ "$(grep -c '^free' record.out)" -ge 3 ] || fail "the program asked too seldom"
}

case_41_unseen_calls_are_told() {
    LD_LIBRARY_PATH=$SIM
    export LD_LIBRARY_PATH
    "$CUDAMEM" record "$OWN_PROGRAMS/hidden" "$SIM/libcuda.so.1" >record.out 2>record.err
    expect "exit status" "$?" 0
    contains "line" "$(cat record.err)" "0 CUDA calls seen although libcuda is mapped"
    record "$PROGRAMS/no_cuda"
    lacks "line for a program without CUDA" "$(cat record.err)" "although libcuda is mapped"
}

case_42_the_users_own_preload_is_kept() {
    LD_PRELOAD="$OWN_PROGRAMS/libdlsym_wrapper.so libm.so.6"
    export LD_PRELOAD
    "$CUDAMEM" record --sim sh -c 'echo "$LD_PRELOAD"' >record.out 2>record.err
    expect "order" "$(sed "s,$PRELOAD,P,; s,$FORWARD,F,; s,$OWN_PROGRAMS,O," record.out)" \
        "P:O/libdlsym_wrapper.so:libm.so.6:F"
}

case_42_mapped_memory_is_counted_once() {
    same "$PROGRAMS/virtual"
    expect "events" "$(events)" "segment_map 20971520,segment_map 20971520,segment_unmap 20971520"
    expect "live at the end" "$(live)" 20971520
    contains "peak" "$(dump)" "peak=41943040 "
    expect "kinds" "$(dump | grep '^entry' | grep -c ' kind=virtual ')" 3
}

case_43_the_recorder_takes_no_device_memory() {
    same "$OWN_PROGRAMS/meminfo"
    expect "free before and after are the plain run's" "$(cat record.out)" "$(cat plain.out)"
}

case_79_the_request_that_failed_is_recorded() {
    CUDAMEM_SIM=1:4GiB
    export CUDAMEM_SIM
    same "$PROGRAMS/oom"
    expect "oom entries" "$(dump | grep -c '^entry oom 5368709120 ')" 1
    expect "its stack" "$(dump | grep '^entry oom' | grep -c 'main')" 1
    expect "its free bytes" "$(dump | sed -n 's/^entry oom .* address=\([0-9]*\) .*/\1/p')" $((4294967296 - 2097152))
    contains "count" "$(dump)" "ooms=1 "
}

# Small ones, and no reset of the device at the end.
case_44_what_a_program_forgets_is_there_with_its_sizes() {
    printf '%s\n' 'alloc a 767' 'alloc b 4' 'alloc c 1048576' 'free c' >lines
    "$CUDAMEM" record --sim "$PROGRAMS/steered" <lines >record.out 2>record.err || fail "status $?"
    expect "bytes" "$(live)" 771
    expect "pieces" "$(dump | grep -c '^live')" 2
    expect "who took them" "$(dump | grep '^live' | grep -c 'stack=[^;]*take;steered_alloc;')" 2
}

# What a pool holds for the next one is cached, not in use.
case_45_cached_memory_is_not_called_allocated() {
    record --allocator caching "$PROGRAMS/loop" 3
    expect "in use, in the pool" "$("$CUDAMEM" info --json snapshot.bin | tr ',{}' '\n\n\n' |
        sed -n 's/^ *"\(allocated\|cached\)": *\([0-9]*\)$/\1 \2/p' | head -2 | tr '\n' ' ')" "allocated 0 cached 2097152 "
}

run_case "$1"
