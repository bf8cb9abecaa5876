#!/bin/sh
# Packs what run.sh needs on a machine that has a GPU and nothing else of ours: an installed tree that finds the shared
# libraries beside it, these libraries, and a reader of snapshots for the checks.
#
# usage: sh test/gpu/pack.sh [TARGET]     (TARGET: .gpu in the source folder; built in build-gpu)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
target=${1:-$root/.gpu}
build=${CUDAMEM_GPU_BUILD:-$root/build-gpu}
# DT_RPATH, which counts for the libraries of libraries and for what is loaded by name, too
[ -f "$build/build.ninja" ] ||
    meson setup "$build" "$root" --prefix=/cudamem --libdir=lib \
        "-Dc_link_args=-Wl,--disable-new-dtags,-rpath,\$ORIGIN/../../lib" >/dev/null
# only what is installed, and the reader
targets=$(meson introspect --installed "$build" | tr ',{}' '\n\n\n' | sed -n "s|^ *\"$build/\([^\"]*\)\": .*|\1|p" |
    while read -r file; do if ninja -C "$build" -t query "$file" >/dev/null 2>&1; then echo "$file"; fi; done)
ninja -C "$build" $targets test/record/dump test/unit/test_driver_memory >"$build/pack.log" || { tail -30 "$build/pack.log"; exit 1; }
rm -rf "$target"
mkdir -p "$target/lib"
target=$(cd "$target" && pwd)
DESTDIR=$target meson install -C "$build" --no-rebuild >>"$build/pack.log"
cp "$build/test/record/dump" "$build/test/unit/test_driver_memory" "$target/"
{
    ldd "$target/cudamem/bin/cudamem" "$target/dump" "$target/test_driver_memory" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p'
    ldconfig -p | sed -n 's/.*libunwind\.so\.8 .*x86-64.* => //p' | head -1
} | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*|libstdc\+\+|libgcc_s)\.so' | sort -u | while read -r library; do
    cp -L "$library" "$target/lib/"
done
du -sm "$target" | awk '{ print "packed: " $1 " MiB in " $2; exit $1 >= 60 }'
