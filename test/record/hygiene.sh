#!/bin/sh
# The injected libraries collide with nobody: they export what they interpose, and need the C library alone.
. "$(dirname "$0")/lib.sh"
lists=$SOURCE/../../src/preload

exports() {
    nm -D --defined-only "$1" | awk '{ print $3 }' | sed 's/@.*//' | sort
}

names() {
    grep -hv '^#' "$@" | grep . | sort
}

preload_exports_only_what_it_interposes() {
    exports "$PRELOAD" >got
    names "$lists/dlsym.txt" "$lists/nvtx.txt" "$lists/signal.txt" "$lists/suballoc.txt" "$lists/torch.txt" "$lists/wrapped.txt" >wanted
    diff wanted got >&2 || fail "exports differ"
}

forwarder_exports_exactly_the_list() {
    exports "$FORWARD" >got
    names "$lists/cuda_exports.txt" >wanted
    diff wanted got >&2 || fail "exports differ"
    contains "name" "$(readelf -d "$FORWARD")" "soname: [libcuda.so.1]"
}

lists_are_sorted_and_wrapped_ones_are_exports() {
    sort -c "$lists/cuda_exports.txt" || fail "cuda_exports.txt is not sorted"
    names "$lists/wrapped.txt" >wrapped
    sort "$lists/cuda_exports.txt" >all
    expect "names that the driver does not have" "$(comm -23 wrapped all)" ""
}

libraries_need_the_c_library_alone() {
    for library in "$PRELOAD" "$FORWARD"; do
        readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux.*)$' >needed
        expect "what $library needs" "$(cat needed)" ""
        readelf -d "$library" | grep -q TEXTREL && fail "$library has text relocations"
        readelf -lW "$library" | grep 'GNU_STACK' | grep -q 'RWE' && fail "$library wants an executable stack"
    done
    return 0
}

exports_agree_with_the_toolkit() {
    for stub in "${CUDA:-/usr/local/cuda}/lib64/stubs/libcuda.so" "${CUDA:-/usr/local/cuda}/lib/stubs/libcuda.so"; do
        [ -e "$stub" ] && break
    done
    [ -e "$stub" ] || skip "no toolkit"
    exports "$stub" | grep '^cu[A-Z]' >toolkit
    sort "$lists/cuda_exports.txt" >ours
    expect "exports of the toolkit's library that the list lacks" "$(comm -23 toolkit ours)" ""
}

run_case "$1"
