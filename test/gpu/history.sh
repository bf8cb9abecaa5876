#!/bin/sh
# Fresh runs of PyTorch under its own recorder: our summary of the pickle against the one PyTorch printed in the process,
# the replay verified, and a recording of ours opened by PyTorch's own reader.  Runs from what pack.sh packed.
#
# usage: sh test/gpu/history.sh          GPU_PACK, PYTHON and GPU_OUT as in run.sh
. "$(dirname "$0")/place.sh"
passed=0 failed=0
check() { # check WHAT STATUS TEXT
    if [ "$2" = 0 ]; then passed=$((passed + 1)) verdict=PASS; else failed=$((failed + 1)) verdict=FAIL; fi
    echo "$verdict $1${3:+: $3}"
}

history() { # history NAME SEED SETTINGS [FRACTION LIMIT]
    name=$1 seed=$2 settings=$3
    PYTORCH_CUDA_ALLOC_CONF=$settings "$python" "$here/torch_history.py" "$name" "$seed" ${4:-} >"$name.log" 2>&1
    check "$name ran" $? "$(tail -1 "$name.log")"
    "$cudamem" summary ${5:+--memory-limit "$5"} "$name.pickle" >"$name.ours.txt" 2>"$name.err"
    cmp -s "$name.ours.txt" "$name.summary.txt"
    check "$name: summary" $? "$(diff "$name.ours.txt" "$name.summary.txt" | head -4 | tr '\n' ' ')"
    text=$("$cudamem" replay --verify ${5:+--memory-limit "$5"} "$name.pickle" 2>&1)
    check "$name: replay --verify" $? "$(echo "$text" | head -3 | tr '\n' ' ')"
}

total=$("$python" -c 'import torch; print(torch.cuda.get_device_properties(0).total_memory)')
limit=$("$python" -c "print(int(0.01 * $total))")
history default 101 ""
history expandable 102 expandable_segments:True
history split 103 max_split_size_mb:32
history roundup 104 roundup_power2_divisions:4
history limited 105 "" 0.01 "$limit"
history collected 106 garbage_collection_threshold:0.5,max_split_size_mb:24 0.01 "$limit"

"$cudamem" record -o recorded.bin "$python" "$here/torch_train.py" >recorded.out 2>&1
"$cudamem" convert --to pickle -o recorded.pickle recorded.bin
"$python" -m torch.cuda._memory_viz trace_plot recorded.pickle -o recorded.html >viz.log 2>&1 && [ -s recorded.html ]
check "PyTorch's memory_viz reads our pickle" $? "$(tail -1 viz.log)"
"$python" -m torch.cuda._memory_viz stats recorded.pickle >viz.stats 2>>viz.log
[ -s viz.stats ] && [ "$("$cudamem" segsum recorded.pickle)" = "$(cat viz.stats)" ] # it ends its output with a blank line
check "PyTorch's segment summary of it is ours" $?
"$cudamem" mem; check "mem" $?
"$cudamem" ps; check "ps" $?
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
