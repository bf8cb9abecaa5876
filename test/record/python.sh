#!/bin/sh
# Python's frames: what the scripts in python/ print of their own stacks is what the recording has, with every interpreter
# that is there: python3 and python3.N on the PATH, and pyenv's.
. "$(dirname "$0")/lib.sh"
SCRIPTS=$SOURCE/python
PYTHONDONTWRITEBYTECODE=1 PYTHONIOENCODING=utf-8
export PYTHONDONTWRITEBYTECODE PYTHONIOENCODING

candidates() {
    for name in python3 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14; do
        command -v $name
    done
    root=$(pyenv root 2>/dev/null || echo "${PYENV_ROOT:-$HOME/.pyenv}")
    for python in "$root"/versions/*/bin/python3; do
        [ -x "$python" ] && echo "$python"
    done
}

# Those whose frames can be read, one a line, each once.
pythons() {
    for python in $(candidates 2>/dev/null); do
        "$python" -c 'import ctypes, os, sys
flags = getattr(sys, "abiflags", "")
if sys.implementation.name == "cpython" and (3, 9) <= sys.version_info < (3, 15) and not set("td") & set(flags):
    print(os.path.realpath(sys.executable))' 2>/dev/null
    done | sort -u
}

list=$(pythons)
[ -n "$list" ] || skip "no python3 whose frames are known"

json() {
    rm -f snapshot.json
    "$CUDAMEM" convert --to json "${1:-snapshot.bin}" -o snapshot.json || fail "${1:-snapshot.bin} cannot be converted"
}

# agrees NAME FILE [DEPTH]: what was printed is what was recorded
agrees() {
    json "$2"
    "$python" "$SCRIPTS/check.py" record.out snapshot.json ${3:+"$3"} >check.out 2>check.err || fail "$python, $1"
}

# each SCRIPT [ARGUMENT...]: by every interpreter, recorded as it runs by itself; then `after` looks at it
each() {
    script=$1
    shift
    for python in $list; do
        plain "$python" "$SCRIPTS/$script" "$@"
        wanted=$status
        rm -f snapshot*.bin*
        record -o snapshot.bin "$python" "$SCRIPTS/$script" "$@"
        expect "$python, exit status of $script" "$status" "$wanted"
        expect "$python, output of $script" "$(sort record.out)" "$(sort plain.out)"
        expect "$python, lines of ours" "$(grep -c '^cudamem: no Python' record.err)" 0
        after "$script"
    done
}

after() {
    agrees "$1" snapshot.bin
    contains "$python, info" "$("$CUDAMEM" info snapshot.bin)" "python_frames recorded (Python 3."
}

frames_are_those_that_python_tells() {
    each calls.py
}

threads_have_their_own_frames() {
    each threads.py
}

deep_recursion_is_cut_at_the_depth() {
    for python in $list; do
        record --depth 64 "$python" "$SCRIPTS/deep.py"
        expect "$python, exit status" "$status" 0
        agrees deep.py snapshot.bin 64
        record --depth 5 "$python" "$SCRIPTS/deep.py"
        agrees deep.py snapshot.bin 5
    done
}

children_have_recordings_with_their_own_frames() {
    for python in $list; do
        rm -f snapshot*.bin*
        record -o snapshot.bin "$python" "$SCRIPTS/forks.py"
        expect "$python, exit status" "$status" 0
        set -- snapshot*.bin
        expect "$python, recordings" "$#" 4
        mv record.out all.out
        for file; do
            sizes=$(dump "$file" | awk '$1 == "entry" && $2 == "segment_alloc" { printf "%s%s", sep, $3; sep = "|" }')
            grep -E "^frames ($sizes) " all.out >record.out
            agrees "forks.py, $file" "$file"
        done
    done
}

functions_that_come_and_go_are_told_apart() {
    for python in $list; do
        record --max-entries 50000 "$python" "$SCRIPTS/reuse.py" 20000
        expect "$python, exit status" "$status" 0
        addresses=$(sed -n 's/^addresses //p' record.out)
        [ "$addresses" -lt 15000 ] || fail "$python: no address came back, of $addresses"
        json
        expect "$python" "$("$python" "$SCRIPTS/reuse.py" 20000 snapshot.json 2>&1)" "functions 20000"
        [ "$(wc -c <snapshot.bin)" -lt 2000000 ] || fail "$python: $(wc -c <snapshot.bin) bytes for equal functions"
    done
}

the_end_of_the_interpreter_is_survived() {
    each ending.py 0
    for python in $list; do
        for round in 1 2 3; do
            record "$python" "$SCRIPTS/ending.py" 4
            expect "$python, exit status with threads that go on" "$status" 0
            agrees "ending.py with threads" snapshot.bin
        done
    done
}

# Before 3.12 an interpreter in an interpreter's thread cannot be told: no frames are better than another's.
several_interpreters_are_never_mixed_up() {
    for python in $list; do
        record "$python" "$SCRIPTS/interpreters.py"
        [ "$status" = 0 ] || { grep -q "^no interpreters" record.err && continue; }
        expect "$python, exit status" "$status" 0
        agrees interpreters.py snapshot.bin
        inner=$("$python" - snapshot.json <<'END'
import json, sys
snapshot = json.load(open(sys.argv[1]))
for entry in snapshot["device_traces"][0]:
    node, names = entry["frames"], []
    while entry["action"] == "segment_alloc" and entry["size"] == 8192 and node:
        frame, node = snapshot["stacks"][node]
        if "python" in snapshot["frames"][frame]["flags"]:
            names.append(snapshot["frames"][frame]["name"])
    if entry["size"] == 8192:
        print(",".join(names), sys.version_info >= (3, 12))
END
        )
        case $inner in
        " False" | "inside,<module> True") ;;
        *) fail "$python: frames in the second interpreter: $inner" ;;
        esac
    done
}

an_interpreter_that_comes_and_goes_is_found() {
    tried=0
    for python in $list; do
        library=$("$python" -c 'import os, sysconfig
get = sysconfig.get_config_var
for folder in get("LIBDIR"), get("LIBPL"), os.path.join(get("LIBDIR"), get("MULTIARCH") or ""):
    path = os.path.join(folder or "", get("INSTSONAME") or "")
    if ".so" in path and os.path.exists(path):
        print(path)
        break')
        [ -n "$library" ] || continue
        PYTHONHOME=$("$python" -c 'import sys; print(sys.base_prefix)')
        export PYTHONHOME
        record --stacks python "$OWN_PROGRAMS/embed" "$library"
        expect "$library, exit status without native frames" "$status" 0
        record "$OWN_PROGRAMS/embed" "$library"
        unset PYTHONHOME
        expect "$library, exit status" "$status" 0
        agrees "embedded" snapshot.bin
        for size in $(sed -n 's/^none //p' record.out); do
            "$DUMP" snapshot.bin | grep "^entry segment_alloc $size " | grep -q '<module>' &&
                fail "$library: frames where no script ran, at $size"
        done
        expect "$library, allocations without Python" "$(grep -c '^none' record.out)" 6
        tried=$((tried + 1))
    done
    [ $tried -gt 0 ] || skip "no python3 is a library"
}

frames_of_each_kind_can_be_left_out() {
    for python in $list; do
        for which in native,python python,native python native none; do
            record --stacks $which "$python" "$SCRIPTS/threads.py"
            expect "$python, exit status" "$status" 0
            json
            flags=$("$python" -c 'import json, sys
print(",".join(sorted({flag for frame in json.load(open(sys.argv[1]))["frames"] for flag in frame["flags"]} & {"native", "python"})))' snapshot.json)
            case $which in
            python,native) expect "$python, --stacks $which" "$flags" native,python ;;
            none) expect "$python, --stacks $which" "$flags" "" ;;
            *) expect "$python, --stacks $which" "$flags" "$which" ;;
            esac
        done
        record --stacks python "$python" "$SCRIPTS/calls.py"
        agrees "calls.py, Python's frames alone" snapshot.bin
    done
    record --stacks pythons true
    expect "exit status of a word that is none" "$status" 2
    contains "message" "$(cat record.err)" "--stacks pythons: native,python, native, python or none"
}

python_frames_stand_for_the_loop_that_ran_them() {
    for python in $list; do
        record "$python" "$SCRIPTS/calls.py"
        expect "$python, frames of the loop" "$(dump | grep -c '_PyEval_EvalFrameDefault')" 0
        stack=$(dump | sed -n 's/^entry segment_alloc 4608 .*stack=//p')
        contains "$python, what the driver was called by, and its callers" "$stack" ";take;"
        contains "$python, what called the script" "$stack" ";main;"
        case $stack in take*) fail "$python: nothing native before Python's frames: $stack" ;; esac
        case $stack in *"<module>;"*) ;; *) fail "$python: nothing native behind Python's frames: $stack" ;; esac
    done
}

outputs_show_python_frames() {
    for python in $list; do
        record "$python" "$SCRIPTS/calls.py"
        "$CUDAMEM" convert --to pickle snapshot.bin -o snapshot.pickle || fail "pickle"
        "$python" - snapshot.pickle record.out >pickle.out 2>pickle.err <<'END' || fail "$python: pickle"
import pickle, sys
wanted = {}
for line in open(sys.argv[2], encoding="utf-8"):
    _, size, frames = line.rstrip("\n").split(" ", 2)
    wanted[int(size)] = frames.split(";")
snapshot = pickle.load(open(sys.argv[1], "rb"))
for entry in snapshot["device_traces"][0]:
    if entry["action"] == "segment_alloc":
        frames = [f"{frame['filename']}|{frame['line']}|{frame['name']}" for frame in entry["frames"]]
        assert [frame for frame in frames if frame in wanted[entry["size"]]] == wanted[entry["size"]], frames
END
        "$CUDAMEM" convert --to folded --view memory snapshot.bin -o memory.folded || fail "folded"
        grep -q 'calls.py:[0-9]*:nested;.*device.py:[0-9]*:take' memory.folded ||
            grep -q 'device.py:[0-9]*:take;.*calls.py:[0-9]*:nested' memory.folded || fail "$python: folded"
        "$CUDAMEM" svg --memory snapshot.bin -o memory.svg || fail "svg"
        contains "$python, svg" "$(cat memory.svg)" "device.py:"
        "$CUDAMEM" diff --frames user snapshot.bin snapshot.bin@start >diff.out || fail "diff"
        contains "$python, diff of the user's frames" "$(cat diff.out)" "imported.py:"
        lacks "$python, diff of the user's frames" "$(cat diff.out)" "<frozen importlib"
        "$CUDAMEM" diff --frames all snapshot.bin snapshot.bin@start >diff.out || fail "diff"
        contains "$python, diff of all frames" "$(cat diff.out)" "<frozen importlib"
    done
}

run_case "$1"
