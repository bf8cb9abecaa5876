#!/bin/sh
# run.sh PROGRAM: it ends well, with its recording in a folder of its own.
folder=$(mktemp -d "${TMPDIR:-/tmp}/cudamem-tsan.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
CUDAMEM_RING_FOLDER=$folder CUDAMEM_MAX_ENTRIES=1000 CUDAMEM_SIM=4:1GiB
TSAN_OPTIONS="halt_on_error=1 exitcode=66 die_after_fork=0"
export CUDAMEM_RING_FOLDER CUDAMEM_MAX_ENTRIES CUDAMEM_SIM TSAN_OPTIONS
unset LD_PRELOAD CUDAMEM_DISABLE
"$@"
