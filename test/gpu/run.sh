#!/bin/sh
# Real programs on a real GPU, with and without the recorder: same output, same status, and entries that agree with what
# the program did.  Runs from what pack.sh packed; needs nvcc, and python3 with torch, cupy, jax for their rows.
#
# usage: sh test/gpu/run.sh [ROW...]      prints PASS or FAIL a check, and a table at the end
# GPU_PACK names the packed folder (.gpu in the source folder), PYTHON the interpreter, GPU_OUT a folder to keep the
# recordings and outputs in.
set -u
here=$(cd "$(dirname "$0")" && pwd)
pack=${GPU_PACK:-$here/../../.gpu}
pack=$(cd "$pack" && pwd) || exit 2
python=${PYTHON:-$(command -v /opt/torch/.venv/bin/python3 || command -v python3)}
nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc)
out=${GPU_OUT:-$(mktemp -d)}
mkdir -p "$out"
cd "$out" || exit 2
wanted=$*
passed=0 failed=0
table=$out/table.txt
: >"$table"

# The command finds its libraries by its own run path, not by the environment, which the program would inherit.
cudamem() {
    "$pack/cudamem/bin/cudamem" "$@"
}
cudamem version || exit 2

check() { # check ROW WHAT STATUS TEXT
    if [ "$3" = 0 ]; then
        passed=$((passed + 1)) verdict=PASS
    else
        failed=$((failed + 1)) verdict=FAIL
    fi
    echo "$verdict $1: $2${4:+: $4}"
    printf '%-24s %-10s %-4s %s\n' "$1" "$2" "$verdict" "${4:-}" >>"$table"
}

# row NAME KIND PROGRAM...
row() {
    name=$1 kind=$2
    shift 2
    case " $wanted " in "  " | *" $name "*) ;; *) return ;; esac
    start=$(date +%s.%N)
    "$@" >"$name.plain.out" 2>"$name.plain.err"
    plain=$?
    middle=$(date +%s.%N)
    cudamem record -o "$name.bin" "$@" >"$name.out" 2>"$name.err"
    recorded=$?
    end=$(date +%s.%N)
    [ "$plain" = "$recorded" ]
    check "$name" status $? "$recorded, plain $plain"
    sed 's/0x[0-9a-f]*//g' "$name.plain.out" >"$name.a"
    sed 's/0x[0-9a-f]*//g' "$name.out" >"$name.b"
    cmp -s "$name.a" "$name.b"
    check "$name" output $? "$(diff "$name.a" "$name.b" | head -3 | tr '\n' ' ')"
    LD_LIBRARY_PATH=$pack/lib "$pack/dump" "$name.bin" >"$name.dump" 2>>"$name.err"
    text=$("$python" "$here/check.py" "$kind" "$name.dump" "$name.out" 2>&1)
    check "$name" entries $? "$text"
    stacks=$(grep -c '^entry.*stack=[^ ]*;' "$name.dump")
    [ "$stacks" -gt 0 ]
    check "$name" stacks $? "$stacks entries with two frames or more"
    times=$(echo "$start $middle $end" | awk '{ printf "%.1f s plain, %.1f s recorded", $2 - $1, $3 - $2 }')
    echo "     $name: $times; $(grep '^cudamem:' "$name.err" | head -2 | tr '\n' ' ')"
}

if [ -n "$nvcc" ]; then
    cuda=$(cd "$(dirname "$nvcc")/.." && pwd)
    stubs=$(ls -d "$cuda/lib64/stubs" "$cuda/targets/x86_64-linux/lib/stubs" 2>/dev/null | head -1)
    "$nvcc" -o runtime_static "$here/runtime.cu" && row runtime_static calls ./runtime_static
    "$nvcc" -cudart shared -o runtime_shared "$here/runtime.cu" &&
        LD_LIBRARY_PATH=$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} row runtime_shared calls ./runtime_shared
    "$nvcc" -x c -cudart none -o driver "$here/driver.c" -L"$stubs" -lcuda && row driver calls ./driver
fi
if [ -n "$python" ] && "$python" -c 'import torch' 2>/dev/null; then
    row torch torch "$python" "$here/torch_train.py"
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True row torch_expandable torch_expandable "$python" "$here/torch_train.py"
    PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync row torch_async contains "$python" "$here/torch_async.py"
fi
[ -n "$python" ] && "$python" -c 'import cupy' 2>/dev/null && row cupy pool "$python" "$here/cupy_work.py"
[ -n "$python" ] && "$python" -c 'import jax' 2>/dev/null && row jax some "$python" "$here/jax_work.py"

# the forwarding object may stand in for this driver only if it knows all its functions
driver=$(ldconfig -p 2>/dev/null | sed -n 's/.*libcuda\.so\.1 .*x86-64.* => //p' | head -1)
if [ -n "$driver" ] && [ -z "$wanted" ]; then
    nm -D --defined-only "$driver" | awk '$2 ~ /[TWi]/ && $3 ~ /^cu[A-Z]/ { sub("@.*", "", $3); print $3 }' | sort >exports.driver
    sort "$here/../../src/preload/cuda_exports.txt" >exports.ours
    comm -23 exports.driver exports.ours >exports.unknown
    [ -s exports.driver ] && [ ! -s exports.unknown ]
    check driver_exports known $? "$(grep -c . exports.driver) functions, unknown: $(tr '\n' ' ' <exports.unknown)"
fi
if [ -z "$wanted" ]; then # the allocator itself on this driver
    text=$(LD_LIBRARY_PATH=$pack/lib "$pack/test_driver_memory" 2>&1)
    check allocator driver $? "$(echo "$text" | grep -E 'LINE|FAILED|PASSED' | tr '\n' ' ')"
fi
echo
cat "$table"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
