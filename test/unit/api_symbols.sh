#!/bin/sh
# The public library shows cudamem_* and nothing else, and its headers stand alone in C17 and C++17.
# usage: api_symbols.sh LIBRARY
set -u
library=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
others=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | grep -v '^cudamem_' | grep -v '^CUDAMEM_')
[ -z "$others" ] || { echo "exported beside cudamem_*: $others"; exit 1; }
nm -D --defined-only "$library" | grep -q ' cudamem_snapshot_open@@CUDAMEM_0.1' || { echo "symbols carry no version"; exit 1; }
for header in "$root"/include/cudamem/*.h; do
    printf '#include <cudamem/%s>\nint main(void) { return 0; }\n' "$(basename "$header")" >"$work/one.c"
    cp "$work/one.c" "$work/one.cc"
    cc -std=c17 -Wall -Wextra -Werror -pedantic -I"$root/include" -fsyntax-only "$work/one.c" || exit 1
    if command -v c++ >/dev/null 2>&1; then
        c++ -std=c++17 -Wall -Wextra -Werror -pedantic -I"$root/include" -fsyntax-only "$work/one.cc" || exit 1
    fi
done
