#!/bin/sh
# Memory served by the caching allocator on a real GPU: programs say the same as without, a training script computes the
# same, and the recording of it is exact.  Runs from what pack.sh packed; needs a C compiler, and python3 with torch.
#
# usage: sh test/gpu/caching.sh      prints PASS or FAIL a check; GPU_PACK and PYTHON as for run.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
pack=$(cd "${GPU_PACK:-$here/../../.gpu}" && pwd) || exit 2
python=${PYTHON:-$(command -v /opt/torch/.venv/bin/python3 || command -v python3)}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
failed=0
unset PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF
for name in caching_answers caching_random; do
    cc -D_GNU_SOURCE -O1 -I"$here/../../src" "$here/../programs/$name.c" -o $name -lpthread -ldl || exit 2
done

check() { # check WHAT STATUS TEXT
    [ "$2" = 0 ] && echo "PASS $1" && return
    failed=$((failed + 1))
    echo "FAIL $1: $3"
}

cached() { # cached OPTIONS PROGRAM...
    "$pack/cudamem/bin/cudamem" record --allocator caching -o cached.bin "$@" >cached.out 2>cached.err
}

exact() {
    "$pack/cudamem/bin/cudamem" replay --verify cached.bin >verify.out 2>&1
    check "$1: the recording is exact" $? "$(grep exact verify.out | head -1)"
}

alike() { # alike NAME OPTIONS PROGRAM...
    name=$1 options=$2
    shift 2
    "$@" >plain.out 2>plain.err
    wanted=$?
    # shellcheck disable=SC2086
    cached $options "$@"
    status=$?
    [ $status = $wanted ] && cmp -s plain.out cached.out
    check "$name: the same as without" $? "$status, alone $wanted; $(diff plain.out cached.out | head -4 | tr '\n' ' ')"
    exact "$name"
}

for word in pointers pools refusals capture reset contexts streams share signal; do
    alike "$word" '' ./caching_answers $word
done
alike 'random work' '' ./caching_random 1 3000 4
alike 'random work in growing segments' '--conf expandable_segments:True' ./caching_random 2 3000 4

cat >train.py <<'P'
import torch
torch.manual_seed(0)
layers = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)]).cuda()
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
side = torch.cuda.Stream()
for step in range(20):
    x = torch.randn(256 + step, 512, device="cuda")
    with torch.cuda.stream(side):
        y = torch.full((256 + step, 512), 2.0, device="cuda")
    torch.cuda.current_stream().wait_stream(side)
    y.record_stream(torch.cuda.current_stream())
    loss = (layers(x) * y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
print("%.6f" % loss.item())
P
alike 'training' '' "$python" train.py
alike 'training in growing segments' '--conf expandable_segments:True' "$python" train.py
[ $failed = 0 ]
