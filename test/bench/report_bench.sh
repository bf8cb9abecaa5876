#!/bin/sh
# `cudamem report` of a big pickle: seconds and peak memory beside the file's size.
#
#     report_bench.sh CUDAMEM [MEGABYTES [FILE]]
#
# Without FILE one is made from test/data/whatif (and removed): 1,000 MB are 12.4 million entries.
set -eu
cudamem=$1
megabytes=${2:-1000}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
if [ $# -ge 3 ]; then
    file=$3
else
    file=$(mktemp "${TMPDIR:-/tmp}/report_bench.XXXXXX")
    trap 'rm -f "$file"' EXIT INT TERM
    "$python" "$here/make_big_pickle.py" "$here/../data/whatif.pickle.gz" "$file" "$megabytes"
fi
cat "$file" >/dev/null # into the page cache
exec "$python" - "$cudamem" "$file" <<'PYTHON'
import os
import subprocess
import sys
import time

cudamem, path = sys.argv[1:]
size = os.path.getsize(path)
print(f"{path}: {size / 1e6:.0f} MB")
for options in (["--by", "live"], ["--by", "allocated"], ["--by", "temporary"], ["--by", "leak", "--since", "#1000"],
                ["--by", "allocated", "--group", "category"]):
    start = time.perf_counter()
    pid = os.posix_spawn(cudamem, [cudamem, "report", *options, "-o", "/dev/null", path], os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    print(f"{' '.join(options):40} {wall:6.2f} s  {usage.ru_utime + usage.ru_stime:6.2f} s worked  "
          f"{usage.ru_maxrss / 1024:6.0f} MiB  {usage.ru_maxrss * 1024 / size:5.2f} of the file's size"
          f"{'' if status == 0 else '  FAILED'}")
PYTHON
