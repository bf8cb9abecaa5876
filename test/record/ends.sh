#!/bin/sh
# However the program ends, it ends the same and the recording is whole; and what happens when we cannot record.
. "$(dirname "$0")/lib.sh"

crash_events='segment_alloc 2097152,segment_alloc 2097152,segment_alloc 2097152'

# ends_like KIND WANTED-STATUS
ends_like() {
    ulimit -c 0
    plain "$PROGRAMS/crash" "$1"
    expect "plain status" "$status" "$2"
    rm -f snapshot.bin
    record "$PROGRAMS/crash" "$1"
    expect "recorded status" "$status" "$2"
    cmp -s plain.out record.out || fail "$1: it prints something else"
    expect "events" "$(events)" "$crash_events"
    expect "live" "$(live)" 6291456
}

end_by_exit() { ends_like exit 0; ends_like exit3 3; }
end_by_quick_exit() { ends_like _exit 0; ends_like quick_exit 0; }
end_by_abort() { ends_like abort 134; ends_like throw 134; }
end_by_kill() { ends_like kill 137; }
end_by_fault() { ends_like segv 139; }

end_by_signal_is_ours_too() {
    cat >wait.sh <<'END'
"$CUDAMEM" record --sim "$PROGRAMS/signals" >record.out 2>record.err
END
    same "$PROGRAMS/signals"
    expect "status" "$status" 143
    contains "its own signal" "$(cat record.out)" "signal 10"
    expect "events" "$(events)" "segment_alloc 1048576"
    python=$(command -v python3) || return 0
    "$python" - <<'END' || fail "the command did not die of the program's signal"
import os, subprocess, sys
run = subprocess.run([os.environ["CUDAMEM"], "record", "--sim", os.environ["PROGRAMS"] + "/signals"], capture_output=True)
sys.exit(0 if run.returncode == -15 else 1)
END
}

a_signal_to_the_command_reaches_the_program() {
    "$CUDAMEM" record --sim sh -c 'trap "echo got it; exit 9" TERM; echo ready; while :; do sleep 0.1; done' >record.out 2>record.err &
    command=$!
    for turn in $(seq 100); do grep -q ready record.out && break; sleep 0.1; done
    kill -TERM $command
    wait $command
    expect "status" "$?" 9
    contains "output" "$(cat record.out)" "got it"
    [ -f snapshot.bin ] || fail "no snapshot"
}

statuses_of_programs_that_do_not_start() {
    record ./no-such-program
    expect "not found" "$status" 127
    contains "line" "$(cat record.err)" "cudamem: ./no-such-program: not found"
    expect "lines" "$(grep -c . record.err)" 1
    echo text >not-executable
    record ./not-executable
    expect "not executable" "$status" 126
    record no-such-program-in-path
    expect "not in PATH" "$status" 127
    [ -e snapshot.bin ] && fail "a snapshot of nothing"
    record --no-such-option true
    expect "unknown option" "$status" 2
    record --stacks perl true
    expect "stacks that nobody takes" "$status" 2
    contains "line" "$(cat record.err)" "perl"
    "$CUDAMEM" record 2>record.err
    expect "no program" "$?" 2
}

each_program_that_a_process_becomes_has_its_file() {
    record "$PROGRAMS/torch" exec "$PROGRAMS/torch" exec "$PROGRAMS/torch" oom
    expect "exit status" "$status" 0
    contains "the line" "$(cat record.err)" "in snapshot.bin and 2 more, one a process"
    contains "the last one has the plain name" "$(dump snapshot.bin | grep -c '^entry oom')" 3
    for file in snapshot.exec1.bin snapshot.exec2.bin; do
        [ -f $file ] || fail "$file is not there: $(ls)"
        expect "$file is one that trains" "$(dump $file | grep -c '^entry oom')" 0
    done
    contains "the peak is that of any of them" "$(cat record.err)" "(the most of one process)"
}

files_of_the_program_have_the_numbers_they_would_have() {
    python=$(command -v python3) || skip "no python3"
    cat >numbers.py <<'END'
import ctypes, os
driver = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096))
os.write(1, b"%d\n" % os.open("/dev/null", 0))
os.closerange(3, 100)
files = [os.open("file%d" % i, os.O_RDWR | os.O_CREAT, 0o600) for i in range(8)]
for turn in range(20):
    driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096))
os.write(1, repr([(file, os.lseek(file, 0, 1), os.fstat(file).st_size) for file in files]).encode())
END
    same "$python" numbers.py
}

no_permission_for_the_output_folder() {
    mkdir closed
    chmod 500 closed
    if [ "$(id -u)" = 0 ]; then
        record -o missing/x.bin "$PROGRAMS/no_cuda"
    else
        record -o closed/x.bin "$PROGRAMS/no_cuda"
    fi
    expect "status" "$status" 125
    expect "the program did not run" "$(cat record.out)" ""
    expect "lines" "$(grep -c . record.err)" 1
    mkdir folder
    record -o folder "$PROGRAMS/no_cuda"
    expect "a directory" "$status" 125
}

no_room_for_the_ring_file() {
    plain "$PROGRAMS/driver_dlsym"
    (ulimit -f 64; "$CUDAMEM" record --sim "$PROGRAMS/driver_dlsym" >record.out 2>record.err; echo $? >status)
    expect "status" "$(cat status)" 0
    cmp -s plain.out record.out || fail "it prints something else"
    expect "the promised line" "$(grep -c 'nothing is recorded' record.err)" 1
}

# The recorder prefers a disk to memory; the folder given by hand is taken as it is.
disk_full_while_recording() {
    mkdir -m 700 small
    mount -t tmpfs -o size=2m,mode=700 tmpfs small 2>/dev/null || skip "no mount here"
    plain "$PROGRAMS/loop" 20000 4096 20000
    "$CUDAMEM" record --sim --max-entries 4096 --env >env.txt
    env $(cat env.txt) CUDAMEM_RING_FOLDER="$work/small" "$PROGRAMS/loop" 20000 4096 20000 >record.out 2>record.err
    status=$?
    cp small/*.ring kept.ring
    umount small
    expect "status" "$status" 0
    cmp -s plain.out record.out || fail "it prints something else"
    contains "the recording says so itself" "$(dump kept.ring)" " incomplete=1 "
    expect "the newest entries are there" "$(dump kept.ring | grep -c '^entry')" 4096
}

names_of_the_files() {
    RANK=5 record -o 'f-%r-%n.bin' "$PROGRAMS/driver_dlsym"
    [ -f f-5-driver_dlsym.bin ] || fail "rank and program: $(ls)"
    record -o 'f-%p-100%%.bin' "$PROGRAMS/driver_dlsym"
    ls | grep -q '^f-[0-9]*-100%\.bin$' || fail "process: $(ls)"
    record -o plain "$PROGRAMS/driver_dlsym"
    [ -f plain ] || fail "no suffix"
    record -o 'h-%h.bin' "$PROGRAMS/driver_dlsym"
    [ -f "h-$(uname -n).bin" ] || fail "host: $(ls)"
}

children_can_be_left_alone() {
    CUDAMEM_SIM_FORK=1
    export CUDAMEM_SIM_FORK
    record --no-follow "$PROGRAMS/forks" before
    set -- snapshot*.bin
    expect "files" "$#" 1
    expect "allocations" "$(dump | grep -c '^entry segment_alloc 2097152 ')" 2
    rm -f snapshot*
    record --no-follow sh -c "'$PROGRAMS/driver_dlsym'; true"
    expect "events of the shell" "$(events)" ""
}

arguments_are_kept_only_if_asked() {
    record "$PROGRAMS/no_cuda" secret
    lacks "arguments" "$(dump)" secret
    record --keep-args "$PROGRAMS/no_cuda" one two
    contains "arguments" "$(dump)" "|one|two"
    record --keep-args "$PROGRAMS/loop" 1
    contains "arguments" "$(dump)" "|1"
}

the_closing_lines() {
    record "$PROGRAMS/driver_dlsym"
    expect "three lines" "$(grep -c '^cudamem: ' record.err)" 3
    contains "what" "$(sed -n 1p record.err)" "recorded 5 events in snapshot.bin"
    contains "peak" "$(sed -n 2p record.err)" "device 0 6.00 MiB"
    contains "next" "$(sed -n 3p record.err)" "cudamem summary snapshot.bin"
    [ -z "$(find "$TMPDIR" -type f)" ] || fail "something was left behind: $(find "$TMPDIR")"
    [ -z "$(find "$TMPDIR" -name 'record-*')" ] || fail "a folder was left behind"
}

environment_instead_of_running() {
    "$CUDAMEM" record --sim=2:1GiB --stacks none --depth 7 --max-entries 10Ki --host -o 'a b' --env >env.txt
    expect "status" "$?" 0
    for line in "CUDAMEM_OUTPUT='a b'" CUDAMEM_STACKS=none CUDAMEM_DEPTH=7 CUDAMEM_MAX_ENTRIES=10240 CUDAMEM_HOST=1 \
        CUDAMEM_SIM=2:1GiB; do
        grep -qxF "$line" env.txt || fail "$line is missing: $(cat env.txt)"
    done
    # it works without the command
    "$CUDAMEM" record --sim --env >env.txt
    env $(cat env.txt) "$PROGRAMS/driver_dlsym" >direct.out || fail "direct run"
    ring=$(find "$TMPDIR" -name '*.ring')
    expect "events in the ring file" "$(events "$ring")" "$three_events"
}

a_newer_driver_is_not_stood_in_for() {
    mkdir newer && cp "$OWN_PROGRAMS/libfuture_driver.so" newer/libcuda.so.1
    LD_LIBRARY_PATH=$work/newer "$CUDAMEM" record --env >env.txt 2>env.err
    expect "status" "$?" 0
    lacks "preloaded" "$(grep '^LD_PRELOAD=' env.txt)" "$FORWARD"
    contains "remark" "$(cat env.err)" "1 functions newer than this cudamem (cuMemOfTheFuture_v9 ...)"
    LD_LIBRARY_PATH=$SIM "$CUDAMEM" record --env >env.txt 2>env.err
    contains "the driver that has no more" "$(grep '^LD_PRELOAD=' env.txt)" "$FORWARD"
    expect "no remark" "$(cat env.err)" ""
    contains "its path" "$(cat env.txt)" "CUDAMEM_DRIVER=$SIM/libcuda.so.1"
}

without_a_driver_nothing_stands_in() {
    ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && skip "this machine has a driver"
    unset LD_LIBRARY_PATH
    "$CUDAMEM" record --env >env.txt 2>env.err
    lacks "preloaded" "$(grep '^LD_PRELOAD=' env.txt)" "$FORWARD"
    "$CUDAMEM" record "$OWN_PROGRAMS/names" libcuda.so.1 >record.out 2>record.err
    expect "status" "$?" 1
    contains "dlopen fails as without us" "$(cat record.out)" "libcuda.so.1: cannot open shared object file"
}

every_kind_of_memory() {
    same "$PROGRAMS/kinds"
    for kind in plain pitched managed array mipmapped; do
        dump | grep '^entry segment_alloc' | grep -q " kind=$kind " || fail "no $kind memory"
    done
    expect "host memory without --host" "$(dump | grep -c ' kind=host ')" 0
    expect "live at the end" "$(live)" 0
    expect "array of 64 x 64 floats" "$(dump | grep -c '^entry segment_alloc 16384 .* kind=array ')" 1
    expect "array of 16 x 16 x 4 floats" "$(dump | grep -c '^entry segment_alloc 4096 .* kind=array ')" 1
    peak=$(dump | sed -n 's/.* peak=\([0-9]*\) .*/\1/p')
    record --host "$PROGRAMS/kinds"
    expect "host memory with --host" "$(dump | grep '^entry segment_alloc' | grep -c ' kind=host ')" 3
    expect "peak of the device with --host" "$(dump | sed -n 's/.* peak=\([0-9]*\) .*/\1/p')" "$peak"
}

memory_in_the_order_of_streams() {
    same "$PROGRAMS/async"
    expect "from the default pool" "$(dump | grep -c '^entry segment_alloc 1048576 .* kind=async ')" 3
    expect "from a pool of its own" "$(dump | grep -c '^entry segment_alloc .* kind=pool ')" 1
    expect "live at the end" "$(live)" 0
    streams=$(dump | sed -n 's/^entry segment_alloc .* stream=\([^ ]*\) .*/\1/p' | sort -u | wc -l)
    [ "$streams" -ge 2 ] || fail "streams: $streams"
    expect "streams unknown" "$(dump | grep -c '^entry.* stream=? ')" 0
}

graphs_count_no_memory_that_is_not_there() {
    same "$PROGRAMS/graph"
    expect "what the device reserves for graphs, by pages" "$(events)" "segment_alloc 2097152,segment_alloc 4194304"
    expect "kinds" "$(dump | grep '^entry' | grep -vc ' kind=graph ')" 0
}

several_devices() {
    CUDAMEM_SIM=3:1GiB
    export CUDAMEM_SIM
    same "$PROGRAMS/devices"
    for device in 0 1 2; do
        contains "device $device" "$(dump)" "device $device total=1073741824 peak=$(((device + 1) * 1048576)) "
    done
    "$CUDAMEM" record --sim=2:2GiB "$PROGRAMS/devices" >/dev/null 2>&1
    contains "option" "$(dump)" "device 1 total=2147483648 "
    lacks "option" "$(dump)" "device 2 "
}

threads_lose_nothing() {
    same "$PROGRAMS/threads" 8 500
    expect "allocations" "$(dump | grep -c '^entry segment_alloc')" 4000
    expect "frees" "$(dump | grep -c '^entry segment_free')" 4000
    expect "live at the end" "$(live)" 0
}

a_free_that_fails_is_undone() {
    CUDAMEM_SIM_FAULTS='cuMemFree_v2:1=1'
    export CUDAMEM_SIM_FAULTS
    record "$PROGRAMS/loop" 1
    expect "live at the end" "$(live)" 1048576
    expect "correcting entries" "$(dump | grep -c '^entry segment_free .* flags=\(8\|10\) ')" 1
}

contexts_take_their_memory_with_them() {
    same "$OWN_PROGRAMS/contexts"
    expect "live at the end" "$(live)" 0
    expect "allocations" "$(dump | grep -c '^entry segment_alloc')" 5
    expect "frees" "$(dump | grep -c '^entry segment_free')" 5
}

run_case "$1"
