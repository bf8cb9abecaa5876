#!/bin/sh
# One example, in a folder of its own: what it prints, and what others make of the files that it leaves.
# usage: run.sh NAME
set -u
name=$1
CUDAMEM_SIM=1:16GiB
PYTHONDONTWRITEBYTECODE=1
export CUDAMEM_SIM PYTHONDONTWRITEBYTECODE
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
    echo "$name: $*" >&2
    exit 1
}

run() {
    "$@" >out 2>err || fail "status $?: $(cat out err)"
    [ ! -s err ] || fail "it says: $(cat err)"
}

# says TEXT: a line of the output
says() {
    grep -qxF -- "$1" out || fail "no line '$1' in: $(cat out)"
}

# What was there at the end replays exactly, and its numbers are those that the library printed itself.
replays() {
    "$CUDAMEM" replay --verify "$1" >verify 2>&1 || fail "$1: $(cat verify)"
    grep -q "exact" verify || fail "$1 is not exact: $(cat verify)"
    "$CUDAMEM" summary "$1" >summary 2>&1 || fail "$1: $(cat summary)"
}

case $name in
allocate)
    run "$EXAMPLES/example_allocate"
    says "observer: device 0 had no room for 8589934592 bytes"
    says "as expected: out of memory"
    says "allocated_bytes.all.current 68008960"
    says "num_ooms 1"
    ;;
history)
    for settings in "" max_split_size_mb:20 expandable_segments:True; do
        run "$EXAMPLES/example_history" $settings
        replays history.pickle
        replays history.bin
        cmp -s out summary || fail "the summaries differ: $(diff out summary)"
        grep -q "<svg" history.svg || fail "no picture"
        python3 - <<'END' || fail "Python does not read it"
import pickle
snapshot = pickle.load(open("history.pickle", "rb"))
assert [a["stage"] for a in snapshot["external_annotations"]] == ["START", "END"]
names = {frame["name"] for entry in snapshot["device_traces"][0] for frame in entry["frames"]}
assert {"take", "work", "main"} <= names, names
assert snapshot["allocator_settings"]["roundup_power2_divisions"]["1"] == 0
END
    done
    ;;
host)
    run "$EXAMPLES/example_host"
    says "the same block: yes"
    says "4194304 bytes in use, 1 calls of the driver"
    ;;
pools)
    run "$EXAMPLES/example_pools"
    says "used by 2"
    says "1 segment in the pool"
    ;;
pluggable)
    run "$EXAMPLES/example_pluggable" "$EXAMPLES/pluggable_plugin.so"
    says "my_alloc: 1000 bytes on device 0"
    says "my_free: 1000 bytes on device 0"
    says "backend: pluggable"
    ;;
suballoc)
    run "$EXAMPLES/example_suballoc"
    says "3 blocks"
    ;;
device)
    run "$EXAMPLES/example_device"
    says "17179869184 of 17179869184 bytes are free"
    says "process 4000000000 uses        1.000 MB GPU memory"
    ;;
library_py)
    run python3 "$SOURCE/library.py" "$LIBRARY"
    says "allocated 32505856"
    says "alloc 1048576 call allocate build_model <module>"
    says "free_completed 2097152 call <module>"
    ;;
torch_allocator_py)
    # PyTorch is not needed: a stand-in loads the functions and calls the hooks as PyTorch does.
    PYTHONPATH=$SOURCE/torch_stand_in run python3 "$SOURCE/torch_allocator.py" "$LIBRARY"
    says "pluggable 1000000.0"
    grep -q "PyTorch CUDA memory summary" out || fail "no summary: $(cat out)"
    ;;
*) fail "no such example" ;;
esac
echo "ok: $name"
