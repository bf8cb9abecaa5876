#!/bin/sh
# Memory served by our own allocator: programs see what they see without, and the recording is exact.
. "$(dirname "$0")/lib.sh"
unset PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF CUDAMEM_ALLOCATOR CUDAMEM_ALLOC_CONF CUDAMEM_MEMORY_LIMIT 2>/dev/null

# cached OPTIONS PROGRAM...: recorded under the caching allocator
cached() {
    record --allocator caching "$@"
}

# alike PROGRAM...: alone, observed, and served by us under OPTIONS: the same output and status; snapshot.bin is of the last
alike() {
    same "$@"
    mv snapshot.bin observed.bin
    # shellcheck disable=SC2086
    cached -o snapshot.bin ${options:-} "$@"
    expect "exit status of $1" "$status" "$wanted"
    cmp -s plain.out record.out || fail "$* prints something else when served: $(diff plain.out record.out)"
    [ -f snapshot.bin ] || fail "$1: no snapshot was written"
}

exact() {
    "$CUDAMEM" replay --verify "${1:-snapshot.bin}" >verify.out 2>&1 || fail "$(cat verify.out)"
    lacks "verification" "$(cat verify.out)" "not exact"
}

# The numbers in the file are the allocator's own; a replay comes to its own ones.
own_numbers() { # but for those that begin with WORD
    "$CUDAMEM" stats snapshot.bin | sed -n 's/^[a-z]/ &/p' >stats.txt
    "$CUDAMEM" replay --json snapshot.bin | tr '{},' '\n\n\n' | sed -n 's/^ *"\([a-z_]*\.[a-z_.]*\|num_[a-z_]*\|max_split_size\)": \(-*[0-9]*\)$/ \1 \2/p' |
        sort >replay.txt
    [ "$(wc -l <replay.txt)" = 122 ] || fail "the replay has $(wc -l <replay.txt) numbers"
    for file in stats replay; do
        sort $file.txt | grep -v "^ ${1:-none}" >$file.sorted
    done
    diff stats.sorted replay.sorted >numbers.txt || fail "numbers: $(cat numbers.txt)"
}

stat_of() {
    "$CUDAMEM" stats "$1" | sed -n "s/^$2 //p"
}

programs_run_as_without() {
    for program in kinds async virtual graph 'threads 8 50' 'oom' 'loop 20 700000 5' sites 'deep 20' leak devices example signals \
        driver_dlsym driver_linked driver_getproc driver_deepbind 'crash exit3' 'crash segv' 'crash abort'; do
        # shellcheck disable=SC2086
        set -- $program
        name=$1
        shift
        alike "$PROGRAMS/$name" "$@"
    done
}

words_for_driver='pointers pools refusals capture reset contexts room streams share signal'
other_calls_answer_as_without() {
    CUDAMEM_SIM=1:1GiB
    export CUDAMEM_SIM
    for word in $words_for_driver; do
        alike "$PROGRAMS/caching_answers" "$word"
        exact
    done
    [ "$(wc -l <plain.out)" -gt 0 ] || fail "nothing was said"
}

exported_memory_is_the_drivers() {
    options=''
    alike "$PROGRAMS/caching_answers" share
    contains "what comes after the first handle" "$(dump | grep '^entry segment_alloc 1000 ')" "call=cuMemAlloc_v2"
    contains "what goes back when it is freed" "$(dump | grep '^entry segment_free 2097152 ')" "call=cuMemFree_v2"
    expect "left in the cache" "$(dump | grep -c '^live 2097152 ')" 1
}

other_calls_answer_as_without_in_growing_segments() {
    CUDAMEM_SIM=1:1GiB
    options='--conf expandable_segments:True'
    export CUDAMEM_SIM
    for word in pools refusals capture room streams signal; do
        alike "$PROGRAMS/caching_answers" "$word"
        exact
    done
    plain "$PROGRAMS/caching_answers" pointers
    cached --conf expandable_segments:True "$PROGRAMS/caching_answers" pointers
    expect "no legacy handles of what is mapped, else" "$(sed 's/ ipc [01]//' record.out)" "$(sed 's/ ipc [01]//' plain.out)"
}

other_devices_may_use_it() {
    CUDAMEM_SIM=2:1GiB
    export CUDAMEM_SIM
    alike "$PROGRAMS/caching_answers" peers
    exact
    options='--conf expandable_segments:True'
    alike "$PROGRAMS/caching_answers" peers
    exact
}

# Streams stand still and go on by chance: what is handed out too early is written over.
nobody_writes_into_anothers_block() {
    CUDAMEM_SIM=1:2GiB
    export CUDAMEM_SIM
    for options in '' '--conf expandable_segments:True' '--conf roundup_power2_divisions:4' \
        '--conf max_split_size_mb:20,garbage_collection_threshold:0.5 --memory-limit 700M'; do
        for seed in 1 2; do
            alike "$PROGRAMS/caching_random" $seed 2000
            exact
            own_numbers
        done
    done
}

nor_where_memory_is_short() {
    CUDAMEM_SIM=1:260MiB
    export CUDAMEM_SIM
    for seed in 1 2 4; do
        [ $seed = 2 ] && options='--conf expandable_segments:True'
        alike "$PROGRAMS/caching_random" $seed 2000
        [ "$(stat_of snapshot.bin num_sync_all_streams)" -gt 0 ] || fail "the cache was never given back"
        exact
        own_numbers inactive_split # the order in which waits end, which moves it on the way, is not told
    done
}

nor_with_many_threads() {
    CUDAMEM_SIM=2:8GiB
    options=''
    export CUDAMEM_SIM
    alike "$PROGRAMS/caching_random" 4 400 16
    exact
}

numbers_are_the_allocators_own() {
    alike "$PROGRAMS/example"
    exact
    own_numbers
    [ "$(stat_of snapshot.bin num_ooms)" = 1 ] || fail "the refused request is not there"
    lacks "bounds" "$("$CUDAMEM" stats snapshot.bin)" "="
    "$CUDAMEM" summary snapshot.bin >summary.out || fail "summary"
    contains "summary" "$(cat summary.out)" "Requested memory"
}

peaks_are_those_of_the_requests() {
    alike "$PROGRAMS/loop" 40 700000 7
    for key in requested_bytes.all.peak requested_bytes.all.allocated allocation.all.peak allocation.all.allocated; do
        expect "$key" "$(stat_of snapshot.bin $key)" "$(stat_of observed.bin $key)"
    done
    expect "segments" "$(stat_of snapshot.bin segment.all.allocated)" 4
    expect "blocks and segments" "$(events | tr ',' '\n' | cut -d' ' -f1 | sort | uniq -c | tr -s ' \n' ' ')" \
        " 40 alloc 40 free_completed 40 free_requested 4 segment_alloc "
    expect "stacks" "$(dump | grep '^entry alloc' | grep -c 'stack=take;loop_take;main')" 40
}

one_block_after_the_other() {
    cached --stacks none "$PROGRAMS/driver_dlsym"
    expect "events" "$(events)" "segment_alloc 2097152,alloc 1048576,segment_alloc 20971520,alloc 2097152,alloc 3145728,\
free_requested 1048576,free_completed 1048576,free_requested 2097152,free_completed 2097152"
    expect "streams" "$(dump | awk '$1 == "entry"' | grep -c 'stream=?')" 0
}

state_of_the_killed_is_whole() {
    cached "$PROGRAMS/crash" kill
    expect "exit status" "$status" 137
    exact
    own_numbers
    expect "live blocks" "$(dump | grep -c '^block 2097152 .*active_allocated')" 3
}

children_have_their_own() {
    same_in_any_order "$PROGRAMS/forks"
    rm -f snapshot*.bin
    cached -o snapshot.bin "$PROGRAMS/forks"
    expect "output" "$(sort record.out)" "$(sort plain.out)"
    set -- snapshot*.bin
    expect "files" "$#" 2
    for file; do exact "$file"; done
    # what a driver does to a child of a process that uses it already
    plain "$PROGRAMS/forks" before
    wanted=$status
    cached "$PROGRAMS/forks" before
    expect "exit status of one that comes too late" "$status" "$wanted"
    expect "its output" "$(sort record.out)" "$(sort plain.out)"
}

a_limit_is_kept() {
    CUDAMEM_SIM=1:4GiB
    export CUDAMEM_SIM
    cached --memory-limit 100M "$PROGRAMS/loop" 6 62914560 2
    [ "$status" != 0 ] || fail "there was more than the limit"
    contains "events" "$(events)" "alloc 62914560,oom 62914560"
    exact
    cached --memory-limit 130M "$PROGRAMS/loop" 6 62914560 2
    expect "exit status with enough" "$status" 0
    exact
}

settings_are_told_before_the_program_starts() {
    for words in '--allocator caching --conf nonsense:1' '--allocator caching --conf max_split_size_mb:x' \
        '--allocator caching --memory-limit much' '--allocator caching --memory-limit 0' '--allocator other' \
        '--conf expandable_segments:True' '--memory-limit 1G' '--allocator observe --conf expandable_segments:True'; do
        # shellcheck disable=SC2086
        record $words touch started
        expect "exit status of $words" "$status" 2
        [ -e started ] && fail "$words: the program was started"
    done
    record --conf expandable_segments:True touch started
    contains "what is missing" "$(cat record.err)" "--allocator caching"
    CUDAMEM_ALLOC_CONF=nonsense:1
    export CUDAMEM_ALLOC_CONF
    cached touch started
    expect "exit status of a variable" "$status" 2
    contains "its name" "$(cat record.err)" "CUDAMEM_ALLOC_CONF"
}

settings_come_from_option_or_environment() {
    CUDAMEM_ALLOC_CONF=expandable_segments:True
    export CUDAMEM_ALLOC_CONF
    cached "$PROGRAMS/driver_dlsym"
    contains "the environment's" "$(events)" "segment_map 2097152,alloc 1048576"
    exact
    cached --conf max_split_size_mb:30 "$PROGRAMS/driver_dlsym"
    contains "the option's" "$(events)" "segment_alloc 2097152,alloc 1048576"
    exact
    record "$PROGRAMS/driver_dlsym"
    expect "neither when observing" "$(events)" "$three_events"
}

tensors_come_with_their_streams() {
    "$CUDAMEM" record --sim --allocator caching --conf 'max_split_size_mb:30' --memory-limit 1G --env >env.txt 2>env.err
    contains "variables" "$(cat env.txt)" "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"
    contains "variables" "$(cat env.txt)" "CUDAMEM_ALLOCATOR=caching"
    contains "variables" "$(cat env.txt)" "CUDAMEM_ALLOC_CONF=max_split_size_mb:30"
    contains "variables" "$(cat env.txt)" "CUDAMEM_MEMORY_LIMIT=1073741824"
    [ -s env.err ] && fail "remarks: $(cat env.err)"
    for name in PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF; do
        env $name=expandable_segments:True "$CUDAMEM" record --sim --allocator caching --env >env.txt 2>env.err
        lacks "variables" "$(cat env.txt)" "cudaMallocAsync"
        expect "one remark" "$(wc -l <env.err | tr -d ' ')" 1
        contains "the remark" "$(cat env.err)" "$name is set and stays"
    done
    "$CUDAMEM" record --sim --env >env.txt 2>env.err
    lacks "variables when observing" "$(cat env.txt)" "ALLOC"
}

blocks_inside_blocks_are_not_recorded() {
    alike "$PROGRAMS/torch" train
    exact
    own_numbers
}

by_hand_it_works_too() {
    hand() {
        LD_LIBRARY_PATH=$SIM LD_PRELOAD=$PRELOAD CUDAMEM_RING_FOLDER=$work CUDAMEM_OUTPUT=x "$@" >hand.out 2>hand.err
        status=$?
        for ring in "$work"/cudamem-*.ring; do
            "$CUDAMEM" convert --to bin "$ring" -o hand.bin || fail "the ring cannot be read"
            rm -f "$ring"
        done
    }
    hand env CUDAMEM_ALLOCATOR=caching "$PROGRAMS/driver_dlsym"
    contains "events" "$(events hand.bin)" "segment_alloc 2097152,alloc 1048576"
    hand env CUDAMEM_ALLOCATOR=caching CUDAMEM_ALLOC_CONF=wrong:1 "$PROGRAMS/driver_dlsym"
    expect "exit status" "$status" 0
    expect "one line" "$(grep -c 'cudamem: CUDAMEM_ALLOC_CONF' hand.err)" 1
    expect "events under wrong settings" "$(events hand.bin)" "$three_events"
    hand env CUDAMEM_ALLOCATOR=other "$PROGRAMS/driver_dlsym"
    contains "the line" "$(cat hand.err)" "CUDAMEM_ALLOCATOR: observe or caching"
}

run_case "$1"
