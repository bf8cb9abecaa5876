#!/bin/sh
# Installs a build folder under a staging folder and looks at what came: every file that users, programs and shells
# look for is there, a C program builds with pkg-config's answer alone, and the installed command finds its manual.
# usage: check.sh BUILD STAGE
set -eu
build=$1 stage=$2
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$stage"
DESTDIR=$stage meson install -C "$build" --no-rebuild --quiet
prefix=$(meson introspect --buildoptions "$build" | python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
top=$stage$prefix
fail() { echo "$*" >&2; exit 1; }
there() {
    for path; do
        found=
        for match in $path; do [ -e "$match" ] && found=1; done
        [ -n "$found" ] || fail "not installed: ${path#"$stage"}"
    done
}
there "$top/bin/cudamem" "$top/include/cudamem/cudamem.h" \
    "$top/lib*/libcudamem.so $top/lib*/*/libcudamem.so" \
    "$top/lib*/pkgconfig/cudamem.pc $top/lib*/*/pkgconfig/cudamem.pc" \
    "$top/libexec/cudamem/* $top/lib*/cudamem/* $top/lib*/*/cudamem/*" \
    "$top/share/man/man1/cudamem.1" "$top/share/man/man1/cudamem-summary.1" "$top/share/man/man5/cudamem-snapshot.5" \
    "$top/share/man/man3/cudamem.3" "$top/share/man/man3/cudamem_history.3" "$top/include/cudamem/history.h" "$top/include/cudamem/cudamem.hpp" \
    "$top/share/cudamem/categories.json" \
    "$top/share/bash-completion/completions/cudamem" "$top/share/zsh/site-functions/_cudamem" \
    "$top/share/fish/vendor_completions.d/cudamem.fish"
for library in libcudamem-preload.so; do
    [ -n "$(find "$stage" -name "$library*")" ] || fail "not installed: $library"
done

"$top/bin/cudamem" version | grep -q '^cudamem [0-9]' || fail "the installed command does not run"
"$top/bin/cudamem" help summary | grep -q 'memory_summary' || fail "the installed command does not find its manual"
if "$top/bin/cudamem" record --sim -o "$stage/installed.bin" true 2>"$stage/stderr"; then :; else
    cat "$stage/stderr" >&2
    fail "the installed command does not record"
fi

pc=$(find "$stage" -name cudamem.pc)
PKG_CONFIG_PATH=${pc%/*}
PKG_CONFIG_SYSROOT_DIR=$stage
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
# shellcheck disable=SC2046
cc -o "$stage/uses-library" "$here/uses_library.c" $(pkg-config --cflags --libs cudamem)
library=$(find "$stage" -name 'libcudamem.so' | head -1)
LD_LIBRARY_PATH=${library%/*} "$stage/uses-library" || fail "a program over the installed library fails"
# shellcheck disable=SC2046
cc -o "$stage/example" "$here/../examples/allocate.c" $(pkg-config --cflags --libs cudamem)
CUDAMEM_SIM=1:16GiB LD_LIBRARY_PATH=${library%/*}:$top/libexec/cudamem/sim "$stage/example" >"$stage/example.out" ||
    fail "an example over the installed library fails"
grep -q 'PyTorch CUDA memory summary' "$stage/example.out" || fail "an example over the installed library says something else"

# Nothing links a CUDA library, and the libraries export only what they promise.
for file in "$top/bin/cudamem" $(find "$stage" -name 'libcudamem*.so*' -type f); do
    if readelf -d "$file" | grep -E 'NEEDED.*(libcuda\.|libcudart|libnvidia)'; then
        fail "$file links a CUDA library"
    fi
done
if nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | grep -vE '^(cudamem_|CUDAMEM_|$)'; then
    fail "libcudamem.so exports the names above"
fi
echo "installed and used"
