#!/bin/sh
# Threads on two devices served by the caching allocator: no race, no lock left held in a child.
work=$(mktemp -d "${TMPDIR:-/tmp}/caching-threads.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
TSAN_OPTIONS='exitcode=66 die_after_fork=0 detect_deadlocks=0' CUDAMEM_RING_FOLDER=$work "$PROGRAM" "$SIM/libcuda.so.1" 16 2000 >"$work/out" 2>"$work/err"
status=$?
[ $status = 0 ] && grep -q '^threads 16$' "$work/out" && exit 0
echo "FAIL: status $status"
head -60 "$work/err"
exit 1
