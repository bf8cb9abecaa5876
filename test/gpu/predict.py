"""A replay's predictions beside real runs: predict.py CUDAMEM NAME SETTINGS... compares NAME.pickle replayed under each of
the settings (or NAME.bin, if file=bin stands first) with NAME.N.stats.json, N = 1, 2, ...; prints a line each and exits 1 if a peak is off by more than 0.5%.
"""
import json
import subprocess
import sys

cudamem, name, confs = sys.argv[1], sys.argv[2], sys.argv[3:]
file = f"{name}.pickle"
if confs and confs[0].startswith("file="):
    file = f"{name}.{confs.pop(0)[5:]}"
limit = []
if confs and confs[0].startswith("limit="):
    limit = ["--memory-limit", confs.pop(0)[6:]]
command = [cudamem, "replay", "--json", *limit, file] + [word for conf in confs for word in ("--conf", conf)]
rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["results"]
wrong = 0
for number, row in enumerate(rows, 1):
    with open(f"{name}.{number}.stats.json", encoding="utf-8") as file:
        real = json.load(file)
    different = [key for key in real if key != "num_sync_all_streams" and real[key] != row["stats"][key]]
    off = {}
    for key in ("allocated_bytes.all.peak", "reserved_bytes.all.peak", "num_device_alloc"):
        off[key] = (row["stats"][key] - real[key]) / max(real[key], 1)
    bad = max(map(abs, off.values())) > 0.005
    wrong += bad
    print(f"{name} {confs[number - 1] or '(default)'}: {len(different)} of {len(real)} differ, exact={row['exact']}; "
          + ", ".join(f"{key} {100 * value:+.3f}%" for key, value in off.items()) + (" BAD" if bad else ""))
sys.exit(wrong > 0)
