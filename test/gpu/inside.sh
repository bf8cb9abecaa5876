#!/bin/sh
# Inside PyTorch: the blocks that our recorder saw against PyTorch's own history of the same process.  Runs from what
# pack.sh packed.
#
# usage: sh test/gpu/inside.sh [PROGRAM...]      GPU_PACK, PYTHON and GPU_OUT as in run.sh; programs of torch_predict.py
. "$(dirname "$0")/place.sh"
passed=0 failed=0
check() { # check WHAT STATUS TEXT
    if [ "$2" = 0 ]; then passed=$((passed + 1)) verdict=PASS; else failed=$((failed + 1)) verdict=FAIL; fi
    echo "$verdict $1${3:+: $3}"
}

inside() { # inside PROGRAM NAME SETTINGS
    PYTORCH_CUDA_ALLOC_CONF=$3 "$cudamem" record -o "$2.bin" "$python" "$here/torch_predict.py" "$1" "$2" >"$2.out" 2>"$2.err"
    check "$2 ran" $? "$(tail -3 "$2.err" | tr '\n' ' ')"
    "$cudamem" convert --to pickle -o "$2.ours.pickle" "$2.bin"
    text=$("$python" "$here/inside.py" "$2.ours.pickle" "$2.pickle" frames 2>&1)
    check "$2: blocks" $? "$text"
}

for program in ${*:-random train}; do
    inside "$program" "$program" ""
    inside "$program" "$program.expandable" expandable_segments:True
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
