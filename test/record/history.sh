#!/bin/sh
# record --torch-history: a stand-in for PyTorch (history/torch) keeps a history as PyTorch does; what is recorded beside
# it joins.
. "$(dirname "$0")/lib.sh"

python=$(command -v python3) || skip "no python3"
TORCH_STAND_IN=$PROGRAMS/libc10.so
PYTHONPATH=$SOURCE/history
PYTHONDONTWRITEBYTECODE=1
export TORCH_STAND_IN PYTHONPATH PYTHONDONTWRITEBYTECODE
work_py=$SOURCE/history/work.py

blocks() {
    dump "${1:-snapshot.bin}" | awk '
        $1 == "live" { printf "%s[%s", sep, $2; sep = " " }
        $1 == "block" { printf "%s%s%s", $4 == "state=inactive" ? " -" : " ", $2, $5 == "requested=?" ? "" : "!" }
        END { print "" }'
}

history() { # history WORD...: recorded with and run without; the same output and status
    plain "$python" "$work_py" "$@"
    wanted=$status
    record --torch-history "$python" "$work_py" "$@"
    expect "exit status" "$status" "$wanted"
    cmp -s plain.out record.out || fail "it prints something else: $(diff plain.out record.out)"
}

requests_are_known_and_others_stand_beside() {
    history train
    expect "events" "$(events)" "segment_alloc 2097152,alloc 1000,segment_alloc 3145728,alloc 3145728,alloc 2000,\
segment_alloc 20971520,alloc 5242880,free_requested 2000,free_completed 2000,alloc 777,segment_alloc 5000,alloc 5000,\
free_requested 3145728,free_completed 3145728,segment_free 3145728"
    "$CUDAMEM" convert --to json -o out.json snapshot.bin || fail "convert"
    expect "entries and memory outside" "$(grep -o '"outside"' out.json | wc -l | tr -d ' ')" 8
    "$CUDAMEM" replay --verify snapshot.bin >verify.out 2>verify.err || fail "not exact: $(cat verify.out verify.err)"
    contains "info" "$("$CUDAMEM" info snapshot.bin)" "framework_blocks history"
    expect "requested bytes" "$("$CUDAMEM" stats requested_bytes.all.current snapshot.bin)" "requested_bytes.all.current 5244657"
    expect "peak reserved" "$("$CUDAMEM" stats reserved_bytes.all.peak snapshot.bin)" "reserved_bytes.all.peak 23068672"
    expect "frames" "$(dump | grep '^entry alloc 777 ' | grep -c 'stack=<module>')" 1
    [ -z "$(ls "$TMPDIR"/cudamem-*/* 2>/dev/null)" ] || fail "something is left: $(ls "$TMPDIR"/cudamem-*/*)"
}

the_users_own_sitecustomize_runs_as_without() {
    PYTHONPATH=$SOURCE/history/own:$PYTHONPATH
    history train
    contains "its line" "$(cat record.out)" "own The user's own"
    history train --fail
    contains "its error is Python's to report" "$(cat record.err)" "of the user's"
    expect "the same words" "$(grep -c 'of the user' plain.err)" "$(grep -c 'of the user' record.err)"
}

an_out_of_memory_keeps_its_history() {
    history oom
    expect "events" "$(events | tr ',' '\n' | grep -c oom)" 2
    for number in 1 2; do
        [ -f snapshot.oom$number.bin ] || fail "there is no snapshot.oom$number.bin: $(ls)"
        contains "info" "$("$CUDAMEM" info snapshot.oom$number.bin)" "framework_blocks history"
        "$CUDAMEM" replay --verify snapshot.oom$number.bin >verify.out 2>verify.err ||
            fail "not exact: $(cat verify.out verify.err)"
    done
    expect "the first one has one" "$(dump snapshot.oom1.bin | grep -c '^entry oom')" 1
    expect "the second one has both" "$(dump snapshot.oom2.bin | grep -c '^entry oom')" 2
}

asked_for_while_it_runs() {
    "$CUDAMEM" record --sim --torch-history "$python" "$work_py" wait >record.out 2>record.err &
    recorder=$!
    for turn in $(seq 200); do
        grep -q waiting record.out && break
        sleep 0.1
    done
    pid=$("$CUDAMEM" ps --json 2>/dev/null | tr ',{}' '\n\n\n' | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1)
    [ -n "$pid" ] || pid=$(pgrep -f "$work_py wait" | tail -1)
    "$CUDAMEM" ctl "$pid" snapshot -o now.bin >ctl.out 2>ctl.err || { kill "$recorder"; fail "ctl: $(cat ctl.err)"; }
    contains "info" "$("$CUDAMEM" info now.bin)" "framework_blocks history"
    "$CUDAMEM" replay --verify now.bin >verify.out 2>&1 || fail "not exact: $(cat verify.out)"
    kill "$pid"
    wait "$recorder"
}

not_where_pytorch_has_no_history_to_tell() {
    record --torch-history --allocator caching true
    expect "with the caching allocator" "$status" 2
    record --torch-history --start-paused true
    expect "paused" "$status" 2
    contains "the line" "$(cat record.err)" "not with --start-paused"
}

without_pythons_end_the_recording_stands_alone() {
    record --torch-history "$python" "$work_py" killed
    [ -f snapshot.bin ] || fail "there is no snapshot"
    contains "the line" "$(cat record.err)" "PyTorch's history of process"
    contains "info" "$("$CUDAMEM" info snapshot.bin)" "framework_blocks recorded"
    [ -z "$(ls "$TMPDIR"/cudamem-*/* 2>/dev/null)" ] || fail "something is left: $(ls "$TMPDIR"/cudamem-*/*)"
}

a_python_that_looks_for_no_history_is_told() {
    history train
    record --torch-history "$python" -S "$work_py" train
    expect "exit status" "$status" 0
    contains "the line" "$(cat record.err)" "was not begun: Python looks for no sitecustomize with -I, -E or -S"
    contains "info" "$("$CUDAMEM" info snapshot.bin)" "framework_blocks recorded"
    record --torch-history "$PROGRAMS/no_cuda"
    lacks "a line without PyTorch" "$(cat record.err)" sitecustomize
}

a_forked_child_writes_no_history() {
    history fork
    contains "info" "$("$CUDAMEM" info snapshot.bin)" "framework_blocks history"
    set -- snapshot*.bin
    expect "files" "$#" 1
}

a_history_that_cannot_be_kept_is_a_line() {
    mkdir -p broken
    cp -r "$SOURCE/history/torch" "$work_py" broken/
    work_py=$work/broken/work.py
    echo 'def _record_memory_history(**options): raise RuntimeError("no such recorder")' >>broken/torch/cuda/memory.py
    PYTHONPATH=$work/broken
    record --torch-history "$python" "$work_py" train
    expect "exit status" "$status" 0
    contains "the line" "$(cat record.err)" "no such recorder"
    contains "info" "$("$CUDAMEM" info snapshot.bin)" "framework_blocks recorded"
}

a_damaged_history_is_left_out() {
    mkdir -p broken
    cp -r "$SOURCE/history/torch" "$work_py" broken/
    work_py=$work/broken/work.py
    echo 'def _snapshot(): return {"segments": 7}' >>broken/torch/cuda/memory.py
    PYTHONPATH=$work/broken
    record --torch-history "$python" "$work_py" train
    expect "exit status" "$status" 0
    contains "the line" "$(cat record.err)" "is left out"
    contains "info" "$("$CUDAMEM" info snapshot.bin)" "framework_blocks recorded"
}

# damaged WORDS STATEMENT: what _snapshot() gives is read, and changed by the statement
damaged() {
    rm -rf broken snapshot.bin
    mkdir -p broken
    cp -r "$SOURCE/history/torch" "$SOURCE/history/work.py" broken/
    work_py=$work/broken/work.py
    printf '%s\n' '_whole = _snapshot' 'def _snapshot():' '    s = _whole()' '    segments, trace = s["segments"], s["device_traces"][0]' \
        "    $2" '    return s' >>broken/torch/cuda/memory.py
    PYTHONPATH=$work/broken
    record --torch-history "$python" "$work_py" train
    expect "exit status with $2" "$status" 0
    contains "the line with $2" "$(cat record.err)" "$1"
    contains "info with $2" "$("$CUDAMEM" info snapshot.bin)" "framework_blocks recorded"
}

# It is read, and contradicts itself.
a_history_that_contradicts_itself_is_left_out() {
    damaged "segments that lie over one another" 'segments.append(dict(segments[0]))'
    damaged "segments that lie over one another" 'segments.append(dict(segments[0], address=segments[0]["address"] + 512, blocks=[]))'
    damaged "tell of different segments" 'del segments[0]'
    damaged "tell of different segments" 'trace[:] = [e for e in trace if e["action"] != "segment_alloc"] + trace[:1] * 2'
    damaged "tell of different blocks" 'del trace[next(i for i, e in enumerate(trace) if e["action"] == "free_completed")]'
}

run_case "$1"
