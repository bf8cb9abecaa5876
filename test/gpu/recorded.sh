#!/bin/sh
# Training jobs recorded without a change to them: peaks as PyTorch counts them; with --torch-history its own entries, a
# replay that is exact, and predictions beside real runs under other settings.  Runs from what pack.sh packed.
#
# usage: sh test/gpu/recorded.sh [PROGRAM...]      GPU_PACK, PYTHON and GPU_OUT as in run.sh; programs of torch_predict.py
. "$(dirname "$0")/place.sh"
passed=0 failed=0
check() { # check WHAT STATUS TEXT
    if [ "$2" = 0 ]; then passed=$((passed + 1)) verdict=PASS; else failed=$((failed + 1)) verdict=FAIL; fi
    echo "$verdict $1${3:+: $3}"
}

# peaks FILE NAME: those of the recording are PyTorch's
peaks() {
    for key in allocated_bytes.all.peak reserved_bytes.all.peak segment.all.peak num_device_alloc; do
        ours=$("$cudamem" stats "$key" "$1" | awk '{ print $2 }')
        theirs=$("$python" -c "import json; print(json.load(open('$2.stats.json'))['$key'])")
        [ "$ours" = "$theirs" ]
        check "$1 $key" $? "$ours, PyTorch $theirs"
    done
}

recorded() { # recorded PROGRAM SETTINGS...
    program=$1
    shift
    PYTORCH_CUDA_ALLOC_CONF= "$cudamem" record -o "$program.plain.bin" "$python" "$here/torch_predict.py" "$program" "$program.plain" >"$program.plain.log" 2>&1
    check "$program ran" $? "$(grep '^cudamem' "$program.plain.log" | tr '\n' ' ')"
    peaks "$program.plain.bin" "$program.plain"
    PYTORCH_CUDA_ALLOC_CONF= "$cudamem" record --torch-history -o "$program.bin" "$python" "$here/torch_predict.py" "$program" "$program" >"$program.log" 2>&1
    check "$program with its history ran" $? "$(grep '^cudamem' "$program.log" | tr '\n' ' ')"
    "$cudamem" convert --to pickle -o "$program.ours.pickle" "$program.bin"
    text=$("$python" "$here/inside.py" "$program.ours.pickle" "$program.pickle" history 2>&1)
    check "$program: entries" $? "$text"
    text=$("$cudamem" replay --verify "$program.bin" 2>&1)
    check "$program: replay --verify" $? "$(echo "$text" | tr '\n' ' ')"
    peaks "$program.bin" "$program"
    number=0
    for conf; do
        number=$((number + 1))
        PYTORCH_CUDA_ALLOC_CONF=$conf "$python" "$here/torch_predict.py" "$program" "$program.$number" >"$program.$number.log" 2>&1 &
    done
    wait
    text=$("$python" "$here/predict.py" "$cudamem" "$program" file=bin "$@" 2>&1)
    check "$program: predictions" $? "$text"
    text=$("$python" "$here/predict.py" "$cudamem" "$program" "$@" 2>&1)
    echo "from PyTorch's own pickle: $text"
}

for program in ${*:-train images language}; do
    recorded "$program" expandable_segments:True max_split_size_mb:64 roundup_power2_divisions:8
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
