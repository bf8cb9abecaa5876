#!/bin/sh
# What-if against what is: programs recorded once, then run again for real under other settings; the replay of the
# recording must give the statistics of these runs.  Runs from what pack.sh packed.
#
# usage: sh test/gpu/predict.sh [PROGRAM...]          GPU_PACK, PYTHON and GPU_OUT as in run.sh
. "$(dirname "$0")/place.sh"
failed=0

# predict PROGRAM RECORDED_SETTINGS FRACTION SETTINGS...: FRACTION of the device as limit, or - for none
predict() {
    program=$1 recorded=$2 fraction=$3
    name=$program${recorded:+-$(echo "$recorded" | tr -c 'a-z0-9\n' -)}
    [ "$fraction" = - ] && fraction=
    shift 3
    PYTORCH_CUDA_ALLOC_CONF=$recorded "$python" "$here/torch_predict.py" "$program" "$name" $fraction >"$name.log" 2>&1 &
    number=0
    for conf; do
        number=$((number + 1))
        PYTORCH_CUDA_ALLOC_CONF=$conf "$python" "$here/torch_predict.py" "$program" "$name.$number" $fraction >"$name.$number.log" 2>&1 &
    done
    wait
    limit=${fraction:+limit=$("$python" -c "import torch; print(int($fraction * torch.cuda.get_device_properties(0).total_memory))")}
    text=$("$cudamem" replay --verify ${limit:+--memory-limit "${limit#limit=}"} "$name.pickle" 2>&1)
    echo "$name: $(echo "$text" | tr '\n' ' ')"
    case $text in "# exact"*) ;; *) failed=$((failed + 1)) ;; esac
    "$cudamem" summary ${limit:+--memory-limit "${limit#limit=}"} "$name.pickle" | cmp - "$name.summary.txt" || failed=$((failed + 1))
    "$python" "$here/predict.py" "$cudamem" "$name" $limit "$@" || failed=$((failed + 1))
}

wanted=${*:-random streams pools special capture train images language serve}
usual="max_split_size_mb:20 roundup_power2_divisions:[1:0,8:4,>:2],max_split_size_mb:100 expandable_segments:True max_split_size_mb:64 roundup_power2_divisions:8 max_split_size_mb:32,roundup_power2_divisions:4 expandable_segments:True,roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"
for program in $wanted; do
    # shellcheck disable=SC2086
    predict "$program" "" - "" $usual
done
case $wanted in *random*)
    predict random expandable_segments:True - "" max_split_size_mb:64
    predict random max_split_size_mb:64 - "" expandable_segments:True ;;
esac
case $wanted in *streams*)
    predict streams garbage_collection_threshold:0.8 0.004 "" expandable_segments:True garbage_collection_threshold:0.6,max_split_size_mb:40 ;;
esac
echo "$failed failed"
[ "$failed" = 0 ]
