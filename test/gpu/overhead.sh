#!/bin/sh
# What recording adds to an allocation and its free, and to a training step, beside what PyTorch's own recorder adds in
# the same run.  Runs from what pack.sh packed; timings, so on a machine with nothing else to do.
#
# A ring that is full before the measuring begins: its pages have been touched, as in any program that runs for a while.
#
# usage: sh test/gpu/overhead.sh [ROUNDS]      GPU_PACK, PYTHON and GPU_OUT as in run.sh
. "$(dirname "$0")/place.sh"
run() { # run NAME PROGRAM...
    name=$1
    shift
    "$@" 2>"$name.err" | tail -1 >>"$name.json" || echo "$name failed: $(tail -2 "$name.err")"
}
script=$here/overhead.py
for round in $(seq "${1:-2}"); do
    run plain "$python" "$script"
    run theirs_all "$python" "$script" all
    run theirs_python "$python" "$script" python
    run ours_all "$cudamem" record --max-entries 4096 -o ours.bin "$python" "$script"
    run ours_python "$cudamem" record --max-entries 4096 --stacks python -o ours.bin "$python" "$script"
    run ours_none "$cudamem" record --max-entries 4096 --stacks none -o ours.bin "$python" "$script"
done
"$python" - <<'END'
import json
def least(name, key):
    with open(name + ".json", encoding="utf-8") as file:
        return min(json.loads(line)[key] for line in file)
names = ["theirs_all", "theirs_python", "ours_all", "ours_python", "ours_none"]
plain, step = least("plain", "pair_ns"), least("plain", "step_ms")
print(f"plain: {plain:.0f} ns a pair, {step:.3f} ms a step")
added = {name: least(name, "pair_ns") - plain for name in names}
for name in names:
    slow = 100 * (least(name, "step_ms") / step - 1)
    print(f"{name}: {added[name]:+.0f} ns a pair, {slow:+.2f}% a step")
print(f"native and Python frames: {added['ours_all'] / added['theirs_all']:.3f} of PyTorch's (wanted: 0.25)")
print(f"Python frames: {added['ours_python'] / added['theirs_python']:.3f} of PyTorch's (wanted: 0.5)")
END
