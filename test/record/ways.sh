#!/bin/sh
# Every way into the driver is caught: one case a row of the list, on the simulated device.
. "$(dirname "$0")/lib.sh"

way_dlsym_of_the_driver() { same "$PROGRAMS/driver_dlsym"; check_three; }
way_linked_with_the_driver() { same "$PROGRAMS/driver_linked"; check_three; }
way_get_proc_address() { same "$PROGRAMS/driver_getproc"; check_three; }
way_get_proc_address_of_old() { same "$PROGRAMS/driver_getproc_v1"; check_three; }
way_driver_opened_deep_bound() { same "$PROGRAMS/driver_deepbind"; check_three; }
way_absolute_path() { same "$PROGRAMS/driver_path" "$SIM/libcuda.so.1"; check_three; }

way_name_without_version() {
    if [ ! -e "$SIM/libcuda.so" ]; then
        mkdir -p names
        ln -s "$SIM/libcuda.so.1" names/libcuda.so
        LD_LIBRARY_PATH=$work/names
        export LD_LIBRARY_PATH
    fi
    same "$PROGRAMS/driver_path" libcuda.so
    check_three
}

plugin_events='segment_alloc 4194304,segment_alloc 5242880,segment_free 4194304'

way_plugin_with_its_own_runtime() {
    same "$PROGRAMS/plugin_host"
    expect "events" "$(events)" "$plugin_events"
}

way_plugin_deep_bound() {
    same "$PROGRAMS/plugin_host" deep
    expect "events" "$(events)" "$plugin_events"
}

way_our_static_runtime() {
    same "$PROGRAMS/example"
    events | grep -q 'segment_alloc' || fail "nothing was recorded"
    dump | grep -q 'stack=.*load_checkpoint' || fail "no stack through load_checkpoint"
}

way_shared_runtime_built_by_nvcc() {
    [ -x "$PROGRAMS/vector_shared" ] || skip "no nvcc"
    same "$PROGRAMS/vector_shared"
    expect "allocations" "$(dump | grep -c '^entry segment_alloc 4194304 ')" 3
    expect "frees" "$(dump | grep -c '^entry segment_free 4194304 ')" 3
    expect "live at the end" "$(live)" 0
}

# NVIDIA's static runtime gives up on a driver that is not NVIDIA's; its first request comes through us all the same.
way_static_runtime_built_by_nvcc() {
    [ -x "$PROGRAMS/vector_static" ] || skip "no nvcc"
    CUDAMEM_DEBUG=1 record "$PROGRAMS/vector_static"
    requests=$(sed -n 's/.*: \([0-9]*\) requests through cuGetProcAddress.*/\1/p' record.err)
    [ "${requests:-0}" -gt 0 ] || fail "its requests do not come through us"
    plain "$PROGRAMS/vector_static"
    cmp -s plain.out record.out || fail "it prints something else when recorded: $(diff plain.out record.out)"
}

way_ctypes() {
    command -v python3 >/dev/null 2>&1 || skip "no python3"
    cat >ways.py <<'END'
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(7000000)) == 0
assert cuda.cuMemFree_v2(address) == 0
print("done")
END
    same python3 ways.py
    expect "output" "$(cat record.out)" done
    expect "events" "$(events)" 'segment_alloc 7000000,segment_free 7000000'
}

way_child_that_a_shell_starts() {
    same sh -c "'$PROGRAMS/driver_dlsym'; exit 4"
    expect "exit status" "$status" 4
    check_three
}

way_program_that_becomes_another() {
    plain "$PROGRAMS/execs" "$PROGRAMS/driver_dlsym"
    record -o snapshot.bin "$PROGRAMS/execs" "$PROGRAMS/driver_dlsym"
    cmp -s plain.out record.out || fail "it prints something else when recorded: $(diff plain.out record.out)"
    total=0
    for file in snapshot*.bin; do
        total=$((total + $(dump "$file" | grep -c '^entry segment_alloc')))
    done
    expect "allocations before and after the exec" "$total" 4
}

way_fork_before_the_first_call() {
    same_in_any_order "$PROGRAMS/forks"
    set -- snapshot*.bin
    expect "files" "$#" 2
    expect "allocations of the parent" "$(dump snapshot.bin | grep -c '^entry segment_alloc 2097152 ')" 2
    other=$(ls snapshot.*.bin)
    expect "allocations of the child" "$(dump "$other" | grep -c '^entry segment_alloc 1048576 ')" 3
}

way_fork_after_the_first_call() {
    CUDAMEM_SIM_FORK=1
    export CUDAMEM_SIM_FORK
    same_in_any_order "$PROGRAMS/forks" before
    set -- snapshot*.bin
    expect "files" "$#" 2
    expect "allocations of the child" "$(dump snapshot.*.bin | grep -c '^entry segment_alloc 1048576 ')" 3
}

way_raw_clone() {
    CUDAMEM_SIM_FORK=1
    export CUDAMEM_SIM_FORK
    same_in_any_order "$PROGRAMS/forks" before clone
    set -- snapshot*.bin
    expect "files" "$#" 2
    expect "allocations of the child" "$(dump snapshot.*.bin | grep -c '^entry segment_alloc 1048576 ')" 3
}

run_case "$1"
