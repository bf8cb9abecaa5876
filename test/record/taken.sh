#!/bin/sh
# Memory that is taken without an allocation of it: graphs, modules, contexts, handles, pools; and what is not told apart.
. "$(dirname "$0")/lib.sh"

# kind NAME: "action size" of the entries of that kind, joined by commas
kind() {
    dump | awk -v kind="kind=$1" '$1 == "entry" && index($0, " " kind " ") { printf "%s%s %s", sep, $2, $3; sep = "," }'
}

# living KIND: bytes at the end
living() {
    dump | awk -v kind="kind=$1" '$1 == "live" && $4 == kind { sum += $2 } END { printf "%d", sum }'
}

current() {
    dump | sed -n 's/^device 0 .* current=\([0-9]*\) .*/\1/p'
}

case_52_memory_of_graphs_is_reserved_until_it_is_trimmed() {
    same "$OWN_PROGRAMS/taken" graphs
    expect "as it grew" "$(kind graph)" "segment_alloc 1073741824,segment_alloc 536870912"
    expect "at the end" "$(current)" 1610612736
    expect "who asked" "$(dump | grep 'kind=graph ' | grep '^entry' | grep -c 'call=cuGraphLaunch.*launch_graph')" 2
    contains "summary" "$("$CUDAMEM" summary snapshot.bin)" "| GPU reserved memory   |   1536 MiB |"
    same "$OWN_PROGRAMS/taken" graphs trim
    expect "trimmed" "$(kind graph)" \
        "segment_alloc 1073741824,segment_alloc 536870912,segment_free 536870912,segment_free 1073741824"
    expect "after the trim" "$(current)" 0
}

memory_captured_into_a_graph_is_the_graphs() {
    same "$OWN_PROGRAMS/taken" captured
    expect "the graph's" "$(kind graph)" "segment_alloc 67108864"
    expect "beside it" "$(kind plain)" "segment_alloc 1048576"
    expect "in the order of a stream" "$(kind async)" ""
}

case_39_a_capture_sees_no_call_of_ours() {
    same "$OWN_PROGRAMS/taken" calls
    lacks "the simulator counted" "$(cat record.out)" "0 calls"
    expect "recorded meanwhile" "$(dump | grep -c '^entry segment_alloc .* kind=plain ')" 17
}

modules_take_what_they_grow_by() {
    CUDAMEM_SIM_MODULE=8MiB
    export CUDAMEM_SIM_MODULE
    same "$OWN_PROGRAMS/taken" modules
    expect "modules" "$(kind module)" \
        "segment_alloc 8388608,segment_alloc 8388608,segment_free 8388608,segment_alloc 8388608,segment_free 8388608,segment_alloc 8388608,segment_free 8388608"
    expect "live at the end" "$(living module)" 8388608
    expect "who loaded it" "$(dump | grep '^live .*kind=module' | grep -c 'load_module')" 1
    contains "what a library loaded late is told by its call" "$(dump)" "kind=module call=cuKernelGetFunction"
    contains "and what a first launch loaded" "$(dump)" "kind=module call=cuLaunchKernel"
    CUDAMEM_SIM_MODULE=0
    same "$OWN_PROGRAMS/taken" modules
    expect "nothing taken, nothing said" "$(kind module)" ""
}

contexts_take_what_they_grow_by() {
    CUDAMEM_SIM_CONTEXT=16MiB
    export CUDAMEM_SIM_CONTEXT
    same "$OWN_PROGRAMS/taken" contexts
    # the first one cannot be measured: it is in what is not told apart
    expect "contexts" "$(kind context)" "segment_alloc 16777216,segment_alloc 16777216,segment_free 16777216"
    expect "the third one took its own with it" "$(kind plain)" \
        "segment_alloc 1048576,segment_alloc 2097152,segment_alloc 3145728,segment_alloc 4194304,segment_free 3145728,segment_free 4194304"
}

case_71_handles_that_are_mapped_nowhere_stay_known() {
    CUDAMEM_SIM=1:108MiB
    export CUDAMEM_SIM
    same "$OWN_PROGRAMS/taken" handles
    expect "made until one was refused" "$(events)" \
        "segment_alloc 20971520,segment_alloc 20971520,segment_alloc 20971520,segment_alloc 20971520,segment_alloc 20971520,oom 20971520"
    expect "live at the end" "$(living virtual)" 104857600
    expect "with the loop's stack" "$(dump | grep '^live' | grep -c 'stack=.*create_and_map;')" 5
    contains "peak" "$(dump)" " peak=104857600 current=104857600 "
    record "$OWN_PROGRAMS/taken" handles kill
    expect "killed" "$status" 137
    expect "live at the end of one that was killed" "$(living virtual)" 104857600
}

physical_memory_counts_once_whether_mapped_or_not() {
    same "$OWN_PROGRAMS/taken" held
    expect "entries of mappings, and of what is left unmapped" "$(kind virtual)" \
        "segment_map 4194304,segment_unmap 4194304,segment_alloc 4194304,segment_map 6291456,segment_unmap 6291456,segment_map 8388608,segment_unmap 8388608,segment_map 8388608"
    expect "live at the end" "$(living virtual)" $((12 * 1048576))
    expect "counted" "$(current)" $((12 * 1048576))
    contains "peak" "$(dump)" " peak=12582912 "
}

what_is_no_memory_counts_nothing() {
    same "$OWN_PROGRAMS/taken" shared
    expect "events" "$(events)" "segment_alloc 1048576"
}

# fact NAME: a number of device 0, of what info says in JSON
fact() {
    "$CUDAMEM" info --json snapshot.bin | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | head -1
}

case_50_cached_memory_is_not_foreign() {
    CUDAMEM_SIM_CONTEXT=800MiB
    export CUDAMEM_SIM_CONTEXT
    record "$OWN_PROGRAMS/taken" arena
    expect "the driver's word" "$(head -1 record.out)" "taken: 3000 MiB"
    expect "used" "$(fact used_when_seen)" $((3000 * 1048576))
    expect "reserved" "$(fact known_when_seen)" $((2200 * 1048576))
    expect "cached" "$(fact cached)" $((700 * 1048576))
    expect "outside" "$(fact context_and_other)" $((800 * 1048576))
    contains "summary" "$("$CUDAMEM" summary snapshot.bin)" "800.00 MiB context and other (other processes too)"
    contains "stats" "$("$CUDAMEM" stats snapshot.bin)" "800.00 MiB context and other (other processes too)"
    lacks "one key of stats" "$("$CUDAMEM" stats reserved_bytes.all.current snapshot.bin)" "context and other"
}

case_51_memory_by_library() {
    same "$OWN_PROGRAMS/taken" library
    "$CUDAMEM" info --json snapshot.bin | tr -d ' \n' >info.json
    contains "the library" "$(cat info.json)" '"owner":"fakenccl","segments":1,"reserved":314572800,"allocated":314572800,"largest":314572800,"largest_from":"fakenccl.c:'
    contains "its function" "$(cat info.json)" ':fakenccl_take_buffers"'
    contains "the program" "$(cat info.json)" '"owner":"taken","segments":1,"reserved":1073741824,'
    contains "in words" "$("$CUDAMEM" info snapshot.bin)" "fakenccl"
    record --stacks none "$OWN_PROGRAMS/taken" library
    contains "without stacks" "$("$CUDAMEM" info --json snapshot.bin | tr -d ' \n')" '"owner":"unknown","segments":2,'
}

frameworks_that_pool_for_themselves_are_told() {
    for case in cupy:CuPy:set_allocator jaxlib:JAX:XLA_PYTHON_CLIENT_PREALLOCATE=false rmm:RMM:pool_allocator=False; do
        folder=${case%%:*}
        rest=${case#*:}
        mkdir -p "lib/$folder"
        cp "$OWN_PROGRAMS/taken" "$OWN_PROGRAMS/libfakenccl.so" "lib/$folder/"
        record "$work/lib/$folder/taken" library
        note=$("$CUDAMEM" info snapshot.bin | grep 'keeps a pool of its own')
        contains "note on $folder" "$note" "${rest%%:*} keeps a pool of its own"
        contains "setting of $folder" "$note" "${rest#*:}"
    done
    same "$OWN_PROGRAMS/taken" library
    lacks "others" "$("$CUDAMEM" info snapshot.bin)" "keeps a pool of its own"
}

case_53_host_memory_is_no_part_of_a_device() {
    record --host "$OWN_PROGRAMS/taken" library
    expect "reserved" "$(fact reserved)" $((1324 * 1048576))
    "$CUDAMEM" info --json snapshot.bin | tr -d ' \n' >info.json
    contains "kind" "$(cat info.json)" '"kind":"host","segments":1,"reserved":67108864,"of_device":"no"'
    contains "summary" "$("$CUDAMEM" summary snapshot.bin)" "| GPU reserved memory   |   1324 MiB |"
}

what_the_drivers_pools_hold_is_told() {
    same "$OWN_PROGRAMS/taken" pool
    held=$(fact held_by_driver_pools)
    [ "$held" -ge $((96 * 1048576)) ] || fail "held by pools: $held"
    expect "other" "$(fact context_and_other)" $(($(fact used_when_seen) - 1048576 - held))
    same "$OWN_PROGRAMS/taken" pool trim
    expect "held by pools that were trimmed" "$(fact held_by_driver_pools)" 0
}

run_case "$1"
