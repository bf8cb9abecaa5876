#!/bin/sh
# What a user does who tries to break it: odd settings, odd names, limits, programs that cannot be recorded, signals.
. "$(dirname "$0")/lib.sh"

need_python() { command -v python3 >/dev/null 2>&1 || skip "no python3"; }

# nothing_left: after a normal end the temporary folder holds no recording
nothing_left() {
    left=$(find "$TMPDIR" -name 'record-*' -o -name '*.ring')
    expect "left in the temporary folder" "$left" ""
}

# refused WORD OPTIONS...: status 2, one line with WORD, and nothing ran
refused() {
    word=$1
    shift
    record "$@" "$PROGRAMS/loop" 1
    expect "status of $*" "$status" 2
    expect "output of $*" "$(cat record.out)" ""
    expect "lines of $*" "$(grep -c . record.err)" 1
    contains "line of $*" "$(cat record.err)" "$word"
}

simulated_devices_are_checked_before_the_program_runs() {
    "$CUDAMEM" record --sim=2 "$PROGRAMS/devices" >record.out 2>record.err
    expect "status of two devices without a size" "$?" 0
    contains "devices" "$(dump)" "device 1 total=17179869184 "
    for list in abc 2: 2:abc : '' 1:0 17 99999 -1 1:600GiB 2:1GiB, '1GiB;2GiB'; do
        refused "simulated device" --sim="$list"
    done
    CUDAMEM_SIM=nonsense
    export CUDAMEM_SIM
    refused "CUDAMEM_SIM"
    "$CUDAMEM" record --sim=3:64MiB "$PROGRAMS/devices" >record.out 2>record.err
    expect "the option wins" "$?" 0
    nothing_left
}

numbers_out_of_range_are_refused() {
    refused "--max-entries" --max-entries 0
    refused "--max-entries" --max-entries 16Ei
    refused "--max-entries" --max-entries x
    refused "--depth" --depth 0
    refused "--depth" --depth 513
    refused "-o" -o -
    refused "-o" -o ''
}

room_for_many_entries_costs_what_is_used() {
    avail=$(df -Pk "$TMPDIR" | awk 'NR == 2 { print $4 }')
    [ "$avail" -gt 20000000 ] || skip "no room for a ring of this size"
    (ulimit -v 40000000; timeout 20 "$CUDAMEM" record --sim --max-entries 99999999999999 "$PROGRAMS/loop" 3 \
        >record.out 2>record.err; echo $? >status)
    expect "status" "$(cat status)" 0
    expect "events" "$(dump | grep -c '^entry')" 6
    record --max-entries 1 "$PROGRAMS/loop" 3
    expect "the newest of six" "$(events)" "segment_free 1048576"
    contains "what was lost" "$(cat record.err)" "5 older ones lost"
    nothing_left
}

a_closed_pipe_for_our_lines_changes_nothing() {
    need_python
    cat >pipe.py <<'END'
import os, subprocess, sys
reader, writer = os.pipe()
os.close(reader)
run = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=writer)
print(run.returncode)
END
    expect "status" "$(python3 pipe.py "$CUDAMEM" record --sim sh -c "'$PROGRAMS/driver_dlsym'; exit 7")" 7
    check_three
    nothing_left
    expect "the program's own SIGPIPE" "$(python3 pipe.py "$CUDAMEM" record --sim sh -c 'echo x >&2; exit 7')" \
        "$(python3 pipe.py sh -c 'echo x >&2; exit 7')"
    expect "its signals are as they were" "$(python3 pipe.py "$CUDAMEM" record --sim sh -c 'kill -PIPE $$')" -13
}

# Its own lines are no reason for the program to end: nobody reads them, or the file may not grow.
the_recorders_lines_end_nobody() {
    need_python
    cat >silent.py <<'END'
import os, resource, subprocess, sys
def ends(limit, writer):
    def before():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    run = subprocess.run([os.environ["CUDAMEM"], "record", "--sim", sys.argv[1], "1"], stdout=subprocess.PIPE,
                         stderr=writer, preexec_fn=before)
    print(run.returncode, run.stdout.decode().strip())
reader, closed = os.pipe()
os.close(reader)
ends(8192, closed)
ends(0, open("limited.err", "w"))
END
    plain "$PROGRAMS/loop" 1
    python3 silent.py "$PROGRAMS/loop" >record.out
    expect "ends" "$(cat record.out)" "$(printf '0 %s\n0 %s' "$(cat plain.out)" "$(cat plain.out)")"
    nothing_left
}

# Of the threads that are recorded, and of the command, which has names to look up and a trace to follow.
the_smallest_stacks_are_enough() {
    same "$OWN_PROGRAMS/small_stacks"
    expect "events" "$(dump | grep -c '^entry')" 24
    expect "their stacks" "$(dump | grep '^entry segment_alloc' | grep -c 'stack=.*take;work')" 12
    record --allocator caching -o cached.bin "$PROGRAMS/loop" 30
    for limit in 64 100 160; do
        for words in "replay --verify" info summary; do
            (ulimit -s $limit; "$CUDAMEM" $words cached.bin >words.out 2>words.err) || fail "$words under ulimit -s $limit: $?"
        done
    done
}

limits_of_the_process_are_survived() {
    plain "$PROGRAMS/loop" 3
    for limit in '-f 0' '-f 8' '-n 16' '-v 200000' '-s 512' '-s 160' '-s 64'; do
        rm -f snapshot.bin
        (ulimit $limit; "$CUDAMEM" record --sim "$PROGRAMS/loop" 3 2>&1; echo "status $?") | cat >record.err
        expect "status under $limit" "$(tail -1 record.err)" "status 0"
        expect "output under $limit" "$(grep '^loop' record.err)" "$(cat plain.out)"
        case $limit in
        -f*) expect "one line says why not, $limit" "$(grep -c 'nothing is recorded' record.err)" 1 ;;
        *) expect "events under $limit" "$(dump | grep -c '^entry')" 6 ;;
        esac
        nothing_left
    done
}

# The snapshot's file grows over the limit, or the disk is full: the ring stays and every command reads it.
a_snapshot_that_cannot_be_written_leaves_the_ring() {
    record -o '%n/%n.bin' "$PROGRAMS/driver_dlsym"
    expect "status" "$status" 0
    ring=$(sed -n 's/.*readable by every command: //p' record.err)
    [ -f "$ring" ] || fail "no ring is named"
    expect "events" "$(events "$ring")" "$three_events"
    contains "line" "$(cat record.err)" "cannot write driver_dlsym/driver_dlsym.bin: its folder does not exist"
    "$CUDAMEM" info "$ring" >info.txt || fail "info does not read it"
    [ -w /dev/full ] || return 0
    record -o /dev/full "$PROGRAMS/driver_dlsym"
    expect "status" "$status" 0
    contains "line" "$(cat record.err)" "/dev/full: No space left on device"
}

what_is_known_of_the_name_is_checked_beforehand() {
    long=$(printf 'x%.0s' $(seq 300))
    for name in missing/x.bin missing/%p.bin missing/%h/x.bin "$long" . ./; do
        record -o "$name" "$PROGRAMS/loop" 1
        expect "status for $name" "$status" 125
        expect "output for $name" "$(cat record.out)" ""
        expect "lines for $name" "$(grep -c . record.err)" 1
    done
    nothing_left
}

odd_names_are_taken_as_they_are() {
    odd=$(printf 'a b\n"\303\251\047$(x)')
    record -o "$odd" "$PROGRAMS/driver_dlsym"
    [ -f "$odd" ] || fail "not there: $(ls -b)"
    expect "closing lines" "$(grep -c . record.err)" 3
    record -o '%q%%%' "$PROGRAMS/driver_dlsym"
    [ -f '%q%%' ] || fail "unknown words are kept: $(ls -b)"
    "$CUDAMEM" record --sim=1:1GiB -o "$odd" --env | sed '/^[A-Z_]*=/s/^/export /' >env.sh
    (. ./env.sh && [ "$CUDAMEM_OUTPUT" = "$odd" ] && "$PROGRAMS/driver_dlsym") >env.out || fail "the environment is wrong"
    ring=$(find "$TMPDIR" -name '*.ring')
    expect "events by the environment alone" "$(events "$ring")" "$three_events"
    for command in info summary stats segsum trace; do
        "$CUDAMEM" $command "$ring" >command.out 2>&1 || fail "$command does not read the ring"
    done
}

programs_that_cannot_be_injected_are_told() {
    command -v cc >/dev/null 2>&1 || skip "no compiler"
    echo 'int main(void) { return 5; }' >static.c
    cc -static static.c -o static 2>/dev/null || skip "no static C library"
    record ./static
    expect "status" "$status" 5
    contains "line" "$(cat record.err)" "./static cannot be recorded: it is statically linked"
    printf '\177ELF\1\1\1' >small-words && head -c 200 /dev/zero >>small-words && chmod +x small-words
    record ./small-words
    contains "line" "$(cat record.err)" "./small-words cannot be recorded: it is a program for another machine"
    cc static.c -o dynamic
    record ./dynamic
    lacks "line" "$(cat record.err)" "cannot be recorded"
    [ "$(id -u)" = 0 ] && chown 1 dynamic && chmod 4755 dynamic || return 0
    record ./dynamic
    expect "status of a set-user-id program" "$status" 5
    contains "line" "$(cat record.err)" "./dynamic cannot be recorded: it runs with more rights than its user"
}

# Not by the program itself, nor where a part of it is recorded.
a_program_that_clears_the_preload_is_told() {
    need_python
    python=$(python3 -c 'import sys; print(sys.executable)')
    cat >driver.py <<'END'
import ctypes, time
ctypes.CDLL("libcuda.so.1").cuInit(0)
end = time.time() + 10
while time.time() < end:
    time.sleep(0.05)
    try:
        if open("looked").read():
            break
    except OSError:
        pass
END
    for way in "exec env -u LD_PRELOAD '$python' driver.py" "env -u LD_PRELOAD '$python' driver.py; exit 6"; do
        rm -f looked
        (sleep 1; echo yes >looked) &
        record sh -c "$way"
        case $way in *6) expect "status" "$status" 6 ;; *) expect "status" "$status" 0 ;; esac
        contains "line" "$(cat record.err)" "has the CUDA driver and not the recorder: something on its way clears LD_PRELOAD"
        wait
    done
    echo yes >looked
    record "$python" driver.py
    lacks "line of one that keeps it" "$(cat record.err)" "clears LD_PRELOAD"
    nothing_left
}

# The folder for ring files may be named by hand.
a_read_only_folder_for_rings_is_told() {
    mkdir -m 700 fixed
    mount -t tmpfs -o ro,size=1m,mode=700 tmpfs fixed 2>/dev/null || skip "no mount here"
    plain "$PROGRAMS/loop" 3
    "$CUDAMEM" record --sim --env | sed '/^[A-Z_0-9]*=/s/^/export /' >env.sh
    (. ./env.sh && CUDAMEM_RING_FOLDER=$work/fixed "$PROGRAMS/loop" 3) >record.out 2>told.err
    status=$?
    cmp -s plain.out record.out || fail "it prints something else"
    TMPDIR=$work/fixed record -o other.bin "$PROGRAMS/loop" 3
    umount fixed
    expect "status" "$status" 0
    expect "the promised line" "$(grep -c 'nothing is recorded: .*Read-only file system' told.err)" 1
    expect "events in another place" "$(events other.bin | tr , '\n' | grep -c .)" 6
}

every_exit_status_passes() {
    for code in 0 1 2 125 126 127 128 137 255; do
        record --stacks none sh -c "exit $code"
        expect "exit status" "$status" "$code"
    done
    for name in HUP INT QUIT ILL ABRT KILL USR1 SEGV USR2 PIPE ALRM TERM XCPU XFSZ VTALRM; do
        (ulimit -c 0; sh -c "kill -$name \$\$") 2>/dev/null
        wanted=$?
        (ulimit -c 0; record sh -c "kill -$name \$\$"; exit $status)
        expect "status of SIG$name" "$?" "$wanted"
    done 2>/dev/null
    nothing_left
}

bytes_pass_unchanged_both_ways() {
    head -c 300000 /dev/urandom >bytes
    "$CUDAMEM" record --sim cat <bytes >record.out 2>/dev/null
    cmp bytes record.out || fail "they do not"
    expect "arguments" "$("$CUDAMEM" record --sim printf '%s|' 'a b' '' '--sim' -o '*' 2>/dev/null)" 'a b||--sim|-o|*|'
}

descriptors_may_be_closed() {
    need_python
    cat >closes.py <<'END'
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(70000))
os.closerange(0, 1000)
mine = [os.open("mine", os.O_RDWR | os.O_CREAT) for i in range(8)]
os.write(mine[7], b"mine")
os.chdir("/")
for i in range(1000):
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(70000)) == 0
os.lseek(mine[7], 0, 0)
os._exit(0 if os.read(mine[7], 10) == b"mine" else 1)
END
    record python3 closes.py
    expect "status" "$status" 0
    expect "events" "$(dump | grep -c '^entry segment_alloc 70000 ')" 1001
    expect "the program's file" "$(cat mine)" mine
    rm -f snapshot.bin
    record sh -c "exec '$PROGRAMS/loop' 3 0<&- 1>&- 2>&-"
    expect "events without standard descriptors" "$(dump | grep -c '^entry')" 6
    nothing_left
}

storms_of_threads_and_forks_lose_nothing() {
    need_python
    cat >threads.py <<'END'
import ctypes, threading
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
def work(i):
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), i % 4)
    cuda.cuCtxSetCurrent(context)
    for k in range(50):
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096 * (i % 4 + 1))) == 0
        if k % 2:
            cuda.cuMemFree_v2(address)
threads = [threading.Thread(target=work, args=(i,)) for i in range(64)]
[t.start() for t in threads]
[t.join() for t in threads]
END
    "$CUDAMEM" record --sim=4:1GiB python3 threads.py >record.out 2>record.err || fail "status"
    for device in 0 1 2 3; do
        contains "device $device" "$(dump | grep "^device $device ")" " entries=1200 lost=0 "
    done
    expect "live at the end" "$(live)" $((64 / 4 * 25 * 4096 * (1 + 2 + 3 + 4)))
    cat >forks.py <<'END'
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
kids = []
for i in range(20):
    kids.append(os.fork())
    if kids[-1] == 0:
        context, address = ctypes.c_void_p(), ctypes.c_uint64()
        cuda.cuInit(0)
        cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
        for k in range(5):
            cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096))
        os._exit(i)
assert [os.waitstatus_to_exitcode(os.waitpid(kid, 0)[1]) for kid in kids] == list(range(20))
END
    record -o f.bin python3 forks.py
    expect "status" "$status" 0
    set -- f.*.bin
    expect "files" "$#" 20
    for file in "$@"; do expect "events of $file" "$(dump "$file" | grep -c '^entry')" 5; done
    nothing_left
}

the_recorder_killed_leaves_a_ring_to_read() {
    "$CUDAMEM" record --sim sh -c "'$PROGRAMS/driver_dlsym'; echo ready; sleep 2; exit 3" >record.out 2>record.err &
    command=$!
    for turn in $(seq 100); do grep -q ready record.out && break; sleep 0.1; done
    kill -KILL $command
    wait $command
    ring=$(find "$TMPDIR" -name '*.ring')
    expect "events" "$(events "$ring")" "$three_events"
    "$CUDAMEM" info "$ring" >info.txt || fail "info does not read it"
}

signals_to_the_group_reach_the_program_once() {
    need_python
    cat >child.py <<'END'
import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("ready", flush=True)
end = time.time() + 1.5
while time.time() < end:
    time.sleep(0.1)
sys.exit(10 + len(got))
END
    cat >group.py <<'END'
import os, signal, subprocess, sys, time
def start():
    run = subprocess.Popen([os.environ["CUDAMEM"], "record", "--sim", "python3", "child.py"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, start_new_session=True)
    run.stdout.readline()
    return run
run = start()
os.killpg(run.pid, signal.SIGTSTP)
time.sleep(0.3)
os.killpg(run.pid, signal.SIGCONT)
print("stopped and continued", run.wait())
run = start()
os.kill(run.pid, signal.SIGINT)
print("sent to the command", run.wait())
END
    expect "ends" "$(python3 group.py | tr '\n' ,)" "stopped and continued 10,sent to the command 11,"
    nothing_left
}

functions_the_driver_lacks_are_not_there() {
    need_python
    cat >lacks.py <<'END'
import ctypes
c, cuda = ctypes.CDLL(None), ctypes.CDLL("libcuda.so.1")
find = c.dlsym
find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
for name in b"cuGLGetDevices_v2", b"cuVDPAUCtxCreate", b"cuNoSuch":
    print(name, find(cuda._handle, name), find(None, name))
print(bool(find(cuda._handle, b"cuGraphicsMapResources")), bool(find(cuda._handle, b"cuMemAlloc_v2")))
END
    plain python3 lacks.py
    record python3 lacks.py
    cmp -s plain.out record.out || fail "they are: $(diff plain.out record.out)"
    contains "one that is not" "$(cat record.out)" "b'cuGLGetDevices_v2' None None"
}

a_release_that_fails_is_undone() {
    need_python
    cat >release.py <<'END'
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, address, handle = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
wish = (ctypes.c_int * 8)(1, 0, 1, 0)
size, zero = ctypes.c_size_t(2 << 20), ctypes.c_size_t(0)
say = lambda result: print(result)
say(cuda.cuInit(0))
say(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
say(cuda.cuMemCreate(ctypes.byref(handle), size, wish, ctypes.c_ulonglong(0)))
say(cuda.cuMemAddressReserve(ctypes.byref(address), size, zero, ctypes.c_uint64(0), ctypes.c_ulonglong(0)))
say(cuda.cuMemRelease(handle))
say(cuda.cuMemMap(address, size, zero, handle, ctypes.c_ulonglong(0)))
say(cuda.cuMemRelease(handle))
say(cuda.cuMemUnmap(address, size))
END
    CUDAMEM_SIM_FAULTS='cuMemRelease:1=1'
    export CUDAMEM_SIM_FAULTS
    same python3 release.py
    expect "results" "$(tr -d '\n' <record.out)" 00001000
    expect "events" "$(events)" "segment_map 2097152,segment_unmap 2097152"
}

a_daemon_is_recorded_beyond_the_end() {
    need_python
    cat >daemon.py <<'END'
import os, sys, time
if os.fork():
    os._exit(7)
os.setsid()
time.sleep(1.2)
os.close(1), os.close(2)
os.execv(sys.argv[1], sys.argv[1:])
END
    record python3 daemon.py "$PROGRAMS/loop" 3
    expect "status" "$status" 7
    for turn in $(seq 50); do
        ring=$(find "$TMPDIR" -name '*.ring')
        [ -n "$ring" ] && [ "$(dump "$ring" 2>/dev/null | grep -c '^entry')" = 6 ] && return 0
        sleep 0.1
    done
    fail "no ring with its six events: $ring"
}

run_case "$1"
