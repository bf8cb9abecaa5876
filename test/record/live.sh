#!/bin/sh
# Recorded programs looked at while they run.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null 2>&1 || skip "no python3"
python=$(python3 -c 'import sys; print(sys.executable)')

# Takes 3, 1 and 2 MiB in take(), gives the last back, and waits.
cat >hold.py <<'END'
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
for size in 3 << 20, 1 << 20, 2 << 20:
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
cuda.cuMemFree_v2(address)
open(sys.argv[1] + ".new", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while not os.path.exists("done"):
    time.sleep(0.02)
END

# hold NAME OPTIONS...: a recorded program that holds memory; its number in $pid, the command's in $command
hold() {
    name=$1
    shift
    rm -f "$name"
    "$CUDAMEM" record --sim=2:1GiB -o "$name.bin" "$@" "$python" hold.py "$name" >"$name.out" 2>"$name.err" &
    command=$!
    wait_for_file "$name"
    pid=$(cat "$name")
}

wait_for_file() {
    for turn in $(seq 200); do [ -e "$1" ] && return 0; sleep 0.05; done
    fail "$1 does not appear"
}

let_go() {
    : >done
    wait
}

top() {
    "$CUDAMEM" top "$@" >top.out 2>top.err
}

# One row a device, of every process or of one.
top_tells_what_is_held() {
    hold first
    first=$pid
    RANK=7 hold second
    top --bytes || fail "status $?"
    expect "rows" "$(awk -F'\t' -v OFS=' ' '/^[0-9]/ && NF > 4 { print $1, $2, $3, $4, $5, $6, $7, $9, $10 }' top.out)" \
        "$first - 0 4194304 4194304 6291456 4 0 recording
$pid 7 0 4194304 4194304 6291456 4 0 recording"
    top --json -n 1 "$pid" || fail "status with a number $?"
    "$python" - "$pid" <<'END' || fail "the JSON: $(cat top.out)"
import json, sys
top = json.load(open("top.out"))
(device,), (stack,) = top["devices"], top["stacks"]
assert device["pid"] == int(sys.argv[1]) and device["reserved"] == 4 << 20 and device["peak_reserved"] == 6 << 20
assert device["rank"] == 7 and device["state"] == "recording" and device["events"] == 4
assert stack["pid"] == device["pid"] and stack["allocated"] == 4 << 20 and stack["blocks"] == 2
assert stack["where"].startswith("hold.py:"), stack["where"] # not what Python calls the driver with
END
    let_go
}

top_names_functions() {
    "$CUDAMEM" record --sim=1:1GiB -o named.bin \
        sh -c "'$PROGRAMS/leak'; : >ready; while [ ! -e done ]; do sleep 0.02; done" >named.out 2>named.err &
    wait_for_file ready
    top --bytes # the process has ended, the command that records it has not
    let_go
    expect "the stack that leaks" "$(awk -F'\t' 'NF == 4 && /^[0-9]/ { print $2, $3, $4 }' top.out)" \
        "9437184 3 driver.h:$(sed -n 's/.*driver.h:\([0-9]*\):take.*/\1/p' top.out):take"
    contains "state" "$(cat top.out)" "ended"
}

top_says_what_is_not_there() {
    top || fail "status $?"
    contains "nothing" "$(cat top.out)" "nothing is being recorded"
    top $$ && fail "a process that is not recorded is found"
    expect "status" "$?" 3
    expect "line" "$(cat top.err)" "cudamem: process $$ is not being recorded by this user; cudamem top without a number shows what is"
    "$PROGRAMS/no_cuda" >/dev/null
    top --interval 0 && fail "--interval 0"
    expect "status" "$?" 2
    top nobody && fail "nobody"
    expect "status" "$?" 2
}

# On a terminal it draws, again and again, and leaves it as it was: by q, by a signal, and with the process.
top_leaves_the_terminal_as_it_was() {
    cat >terminal.py <<'END'
import fcntl, os, pty, signal, struct, subprocess, sys, termios, time
def run(end, *arguments):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 100, 0, 0))
    before = termios.tcgetattr(slave)
    child = subprocess.Popen([os.environ["CUDAMEM"], "top", *arguments], stdin=slave, stdout=slave, stderr=slave,
                             start_new_session=True)
    text = b""
    while text.count(b"recording") < 2: # drawn twice
        text += os.read(master, 65536)
    assert termios.tcgetattr(slave)[3] & termios.ICANON == 0
    end(child, master)
    status = child.wait()
    os.set_blocking(master, False)
    try:
        while True:
            text += os.read(master, 65536)
    except BlockingIOError:
        pass
    assert termios.tcgetattr(slave) == before, "the terminal is not as it was"
    assert text.startswith(b"\033[?1049h\033[?25l"), text[:40]
    assert b"\033[?25h\033[?1049l" in text, text[-80:]
    assert max(len(part.split(b"\r\n")) for part in text.split(b"\033[H")) <= 13
    return status, text
pid = sys.argv[1]
assert run(lambda child, master: os.write(master, b"xq"))[0] == 0
assert run(lambda child, master: child.send_signal(signal.SIGINT))[0] == -signal.SIGINT
assert run(lambda child, master: child.send_signal(signal.SIGTERM), pid)[0] == -signal.SIGTERM
status, text = run(lambda child, master: open("done", "w").close(), pid)
assert status == 0 and b"process %s has ended" % pid.encode() in text, text[-200:]
END
    hold first
    "$python" terminal.py "$pid" || fail "see above"
    let_go
}

run_case "$1"
