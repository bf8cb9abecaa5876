#!/bin/sh
# Every test program does on the simulated device what its last line says: programs.sh FOLDER SIM_FOLDER [nvcc].
set -u
folder=$1 sim=$2 nvcc=${3:-}
export LD_LIBRARY_PATH="$sim" CUDAMEM_SIM=2:4GiB
failures=0

# expect STATUS 'last line' PROGRAM [ARGUMENTS]
expect() {
    status=$1 line=$2
    shift 2
    program=$1
    shift
    output=$("$folder/$program" "$@" 2>&1)
    got=$?
    last=$(printf '%s\n' "$output" | tail -n 1)
    if [ "$got" != "$status" ] || [ "$last" != "$line" ]; then
        echo "$program $*: status $got and \"$last\" instead of $status and \"$line\""
        failures=$((failures + 1))
    fi
}

for way in dlsym linked getproc getproc_v1 deepbind path; do
    expect 0 "driver_$way: allocations=3 frees=2 bytes=6291456" "driver_$way"
done
expect 0 'driver_path: allocations=3 frees=2 bytes=6291456' driver_path "$sim/libcuda.so.1"
expect 0 'plugin_host: allocations=2 frees=1 bytes=9437184' plugin_host
expect 0 'plugin_host: allocations=2 frees=1 bytes=9437184' plugin_host deep
expect 0 'kinds: allocations=9 frees=9 bytes=7494144' kinds
expect 0 'async: allocations=4 frees=4 bytes=4194304' async
expect 0 'virtual: allocations=2 frees=1 bytes=41943040' virtual
expect 0 'graph: allocations=2 frees=2 bytes=4194304' graph
expect 0 'threads: allocations=1000 frees=1000 bytes=10240000' threads
expect 99 'cu.cuInit(0) failed: 3' forks before
expect 2 'a b' execs "$folder/no_cuda" a b
expect 0 'crash: allocations=3 frees=0 bytes=6291456' crash exit
expect 3 'crash: allocations=3 frees=0 bytes=6291456' crash exit3
expect 0 'crash: allocations=3 frees=0 bytes=6291456' crash _exit
expect 0 'crash: allocations=3 frees=0 bytes=6291456' crash quick_exit
expect 134 'crash: allocations=3 frees=0 bytes=6291456' crash abort
expect 137 'crash: allocations=3 frees=0 bytes=6291456' crash kill
expect 139 'crash: allocations=3 frees=0 bytes=6291456' crash segv
expect 0 'oom: allocations=1 frees=1 bytes=2097152' oom
expect 0 'loop: allocations=1500 frees=1500 bytes=1572864000' loop
expect 0 'loop: allocations=20 frees=20 bytes=81920' loop 20 4096 5
expect 0 'sites: allocations=1 frees=1 bytes=3145728' sites
expect 0 'deep: allocations=1 frees=1 bytes=1048576' deep
expect 0 'leak: allocations=5 frees=2 bytes=15728640' leak
expect 3 'x y z' no_cuda x y z
expect 143 'signals: allocations=1 frees=0 bytes=1048576' signals
expect 0 'devices: allocations=2 frees=0 bytes=3145728' devices
expect 0 '' silent 10
expect 0 'done: 18 MiB never freed' example
if [ -n "$nvcc" ]; then
    expect 0 'vector: allocations=3 frees=3 bytes=12582912' vector_shared
    expect 0 'runtime: ok' runtime_shared
fi
# No driver at all: one clear line.
LD_LIBRARY_PATH=/nonexistent
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    expect 1 'example: no usable CUDA driver (libcuda.so.1) was found' example
fi
[ "$failures" = 0 ]
