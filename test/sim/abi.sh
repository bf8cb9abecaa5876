#!/bin/sh
# Our declarations against the real headers: abi.sh "CC" CUDA_ROOT SOURCE_ROOT PYTHON EXPORT_LIST.  77: other version.
set -eu
compiler=$1 cuda=$2 source=$3 python=$4 list=$5
here=$(cd "$(dirname "$0")" && pwd)
version=$(awk '$1 == "#define" && $2 == "CUDA_VERSION" { print $3 }' "$cuda/include/cuda.h")
if [ "$version" -lt 13000 ] || [ "$version" -ge 13010 ]; then
    echo "the toolkit in $cuda is of version $version; our declarations are those of 13000"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Sizes, offsets and values, once with our header and once with theirs.
both() { # NAME OUR_HEADER OUR_INCLUDE REAL_INCLUDES
    "$python" "$here/make_abi.py" "$2" "$1.inc" "facts"
    { echo "#include \"$3\""; cat "$1.inc"; } | sed "s/ facts\[\]/ ours[]/" > ours.c
    { for real in $4; do echo "#include <$real>"; done; cat "$1.inc"; } | sed "s/ facts\[\]/ real[]/" > real.c
    cat > main.c <<'END'
#include <stdio.h>
#include <string.h>
extern const struct fact { const char *name; long long value; } ours[], real[];
int main(void)
{
    int wrong = 0, i;
    for (i = 0; ours[i].name; i++)
        if (!real[i].name || strcmp(ours[i].name, real[i].name) || ours[i].value != real[i].value) {
            printf("%s: %lld, really %lld\n", ours[i].name, ours[i].value, real[i].value);
            wrong++;
        }
    printf("%d facts, %d wrong\n", i, wrong);
    return wrong || i < 50;
}
END
    $compiler -std=c17 -I"$source/src" -c ours.c -o ours.o
    $compiler -std=gnu17 -D__CUDA_API_VERSION_INTERNAL -I"$cuda/include" -c real.c -o real.o
    $compiler main.c ours.o real.o -o compare
    ./compare
}
both driver "$source/src/device/cuda_types.h" device/cuda_types.h cuda.h
both runtime "$source/src/sim/cudart.h" sim/cudart.h "cuda.h cuda_runtime_api.h"

# Prototypes: the compiler refuses to hear the same function declared in two ways.
cat > prototypes.c <<'END'
#include <cuda.h>
#include <cudaProfiler.h>
#define CUDA_ABI_PROTOTYPES_ONLY
#include "device/cuda_abi.h"
END
$compiler -std=gnu17 -Werror -D__CUDA_API_VERSION_INTERNAL -I"$source/src" -I"$cuda/include" -c prototypes.c -o prototypes.o
# ... if both declare it: no name may be ours alone.
declared() { grep -oE '\bcu[A-Z][A-Za-z0-9_]*\(' | tr -d '(' | sort -u; }
sed -n 's/^extern __typeof__(\w*) \(\w*\);/\1(/p; s/^CUresult \(\w*\)(.*/\1(/p' "$source/src/device/cuda_abi.h" | declared > ours
echo '#include <cuda.h>
#include <cudaProfiler.h>' | $compiler -E -P -D__CUDA_API_VERSION_INTERNAL -I"$cuda/include" -x c - | declared > real
invented=$(comm -23 ours real)
if [ -n "$invented" ]; then
    echo "not in cuda.h:" $invented
    exit 1
fi
echo "$(wc -l < ours) prototypes agree"

# A difference must be found: the same check with one prototype changed has to fail.
sed 's/cuMemAlloc_v2(CUdeviceptr \*address, size_t bytes)/cuMemAlloc_v2(CUdeviceptr *address, int bytes)/' \
    "$source/src/device/cuda_abi.h" > changed.h
sed 's|device/cuda_abi.h|changed.h|' prototypes.c > changed.c
if $compiler -std=gnu17 -w -D__CUDA_API_VERSION_INTERNAL -I. -I"$source/src" -I"$cuda/include" -c changed.c -o changed.o 2>/dev/null; then
    echo "a wrong prototype went unnoticed"
    exit 1
fi

# The list of a driver's exports against the stub library.
stub=$cuda/lib64/stubs/libcuda.so
if [ -f "$list" ] && [ -f "$stub" ]; then
    grep -v '^#' "$list" | awk 'NF { print $1 }' | sort -u > known
    nm -D --defined-only "$stub" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u > stub
    missing=$(comm -13 known stub)
    if [ -n "$missing" ]; then
        echo "$list lacks:" $missing
        exit 1
    fi
    echo "$(wc -l < stub) exports are in the list"
fi
