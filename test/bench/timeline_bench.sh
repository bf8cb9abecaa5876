#!/bin/sh
# The timeline of a big pickle, whole command: seconds, peak memory and the picture's size, beside the file's size.
#
#     timeline_bench.sh CUDAMEM [MEGABYTES [FILE]]
#
# Without FILE one is made from test/data/whatif (and removed).
set -eu
tool=$1
megabytes=${2:-1000}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
folder=$(mktemp -d "${TMPDIR:-/tmp}/timeline_bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT INT TERM
if [ $# -ge 3 ]; then
    file=$3
else
    file=$folder/big.pickle
    "$python" "$here/make_big_pickle.py" "$here/../data/whatif.pickle.gz" "$file" "$megabytes"
fi
"$python" - "$tool" "$file" "$folder/out.svg" <<'PYTHON'
import os
import resource
import subprocess
import sys
import time

tool, path, out = sys.argv[1:]
size = os.path.getsize(path)
with open(path, "rb") as file:  # into the page cache
    while file.read(1 << 24):
        pass
for axis in ("time", "entries"):
    start, worked = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([tool, "svg", "--timeline", "--x", axis, path, "-o", out], check=True)
    wall, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"--x {axis:8} {wall:6.2f} s  {now.ru_utime + now.ru_stime - worked.ru_utime - worked.ru_stime:6.2f} s worked"
          f"  {now.ru_maxrss / 1024:6.0f} MiB ({now.ru_maxrss * 1024 / size:4.2f} of the file's {size / 1e6:.0f} MB)"
          f"  picture {os.path.getsize(out) / 1e6:.2f} MB")
PYTHON
