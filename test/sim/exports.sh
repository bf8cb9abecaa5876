#!/bin/sh
# Our libraries export names of the real ones, and no others: exports.sh SIM_FOLDER LIST [REAL_LIBCUDART].
set -eu
sim=$1 list=$2 real=${3:-}
names() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
names "$sim/libcuda.so.1" > "$folder/ours"
grep -v '^#' "$list" | awk 'NF { print $1 }' | sort -u > "$folder/known"
[ -s "$folder/ours" ] && [ -s "$folder/known" ]
foreign=$(comm -23 "$folder/ours" "$folder/known")
if [ -n "$foreign" ]; then
    echo "libcuda.so.1 exports what a real one does not:" $foreign
    exit 1
fi
[ "$(readelf -d "$sim/libcuda.so.1" | grep -c 'SONAME.*libcuda\.so\.1')" = 1 ]
[ "$(readelf -d "$sim/libcudart.so.13" | grep -c 'SONAME.*libcudart\.so\.13')" = 1 ]
if readelf -d "$sim/libcudart.so.13" | grep 'NEEDED.*libcuda\.'; then
    echo "libcudart.so.13 must find the driver at run time"
    exit 1
fi
nm -D --defined-only "$sim/libcudart.so.13" | grep -q 'cudaMalloc@@libcudart\.so\.13'
if [ -n "$real" ]; then
    names "$sim/libcudart.so.13" > "$folder/ours"
    names "$real" > "$folder/known"
    foreign=$(comm -23 "$folder/ours" "$folder/known")
    if [ -n "$foreign" ]; then
        echo "libcudart.so.13 exports what the real one does not:" $foreign
        exit 1
    fi
fi
