#!/bin/sh
# Reading a big pickle: our seconds and peak of anonymous memory beside Python's pickle.load of the same file, with its
# garbage collector on and off, all in one run.
#
#     pickle_bench.sh PICKLE_TOOL [MEGABYTES [FILE]]
#
# Without FILE one is made from test/data/whatif (and removed).  Ratios are of the time that the processor worked.
set -eu
tool=$1
megabytes=${2:-1000}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
if [ $# -ge 3 ]; then
    file=$3
else
    file=$(mktemp "${TMPDIR:-/tmp}/pickle_bench.XXXXXX")
    trap 'rm -f "$file"' EXIT INT TERM
    "$python" "$here/make_big_pickle.py" "$here/../data/whatif.pickle.gz" "$file" "$megabytes"
fi
exec "$python" - "$tool" "$file" <<'PYTHON'
import os
import re
import subprocess
import sys

tool, path = sys.argv[1:]
size = os.path.getsize(path)
LOAD = """
import gc, os, pickle, resource, sys, time
if sys.argv[2] == "off":
    gc.disable()
start, worked = time.perf_counter(), time.process_time()
with open(sys.argv[1], "rb") as file:
    made = pickle.load(file)
print(time.perf_counter() - start, time.process_time() - worked, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.stdout.flush()
os._exit(0)
"""


def ours():
    said = subprocess.run([tool, "read", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.match(r"([\d.]+) s \(([\d.]+) worked\).*peak anonymous (\d+) KiB", said)
    return float(found[1]), float(found[2]), int(found[3])


def theirs(collector):
    said = subprocess.run([sys.executable, "-c", LOAD, path, collector], check=True, stdout=subprocess.PIPE, text=True).stdout
    wall, worked, peak = said.split()
    return float(wall), float(worked), int(peak)


with open(path, "rb") as file:  # into the page cache
    while file.read(1 << 24):
        pass
rows = [("cudamem", min((ours() for _ in range(3)), key=lambda row: row[1])),
        ("pickle.load, gc off", theirs("off")), ("pickle.load, gc on", theirs("on"))]
print(f"{path}: {size / 1e6:.0f} MB")
for name, (wall, worked, peak) in rows:
    print(f"{name:20} {wall:8.2f} s  {worked:8.2f} s worked  {size / worked / 1e6:7.1f} MB/s  {peak / 1024:8.0f} MiB"
          f"  {worked / rows[0][1][1]:6.1f} x the time (wall {wall / rows[0][1][0]:5.1f})  {peak * 1024 / size:5.2f} of the file's size")
PYTHON
