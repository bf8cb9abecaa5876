#!/bin/sh
# From nothing to a picture: install what is missing, build, record the example program, show what its memory did.
# usage: sh tools/quickstart.sh [BUILD_FOLDER]      (default: build, in the source folder)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac

. "$root/tools/packages.sh"
want_build
install_missing

if [ -e "$build/build.ninja" ]; then
    echo "Building in $build"
else
    echo "Building in $build (a minute or two the first time)"
fi
log=$(mktemp "${TMPDIR:-/tmp}/cudamem-build-XXXXXX")
trap 'rm -f "$log"' EXIT
run() {
    if ! "$@" >"$log" 2>&1; then
        tail -30 "$log" >&2
        echo "This failed: $*" >&2
        exit 1
    fi
}
[ -e "$build/build.ninja" ] || run meson setup "$build" "$root" -Dtests=false
run ninja -C "$build"

cudamem=$build/tools/cudamem
example=$build/test/programs/example
snapshot=$build/quickstart.bin
picture=$build/quickstart.svg
# The simulated device stands in where there is no GPU.
device=
if "$cudamem" mem >/dev/null 2>&1; then
    echo "Recording the example program on the GPU"
else
    echo "Recording the example program on a simulated device (there is no GPU here)"
    device=--sim
fi
"$cudamem" record $device -o "$snapshot" "$example"
echo
"$cudamem" summary -a "$snapshot"
"$cudamem" svg --memory "$snapshot" -o "$picture"
echo
echo "Snapshot: $snapshot"
echo "Picture:  $picture (open it in a browser)"
echo "Next:     $cudamem info $snapshot"
