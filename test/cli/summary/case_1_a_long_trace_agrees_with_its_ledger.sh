# needs: python3 unsanitized
# 700,001 entries, so that the program's own few MiB do not count: totals are those of the generator, and memory stays below twice the file.
python3 "$DATA/../cli/make_long.py" long.pickle 700000 >ledger
python3 - <<'END'
import json, os, resource, subprocess
out = json.loads(subprocess.run(["cudamem", "stats", "--json", "long.pickle"], check=True, capture_output=True).stdout)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
def find(node, *keys):
    for key in keys:
        node = node[key]
    return node
stats = out["devices"][0]["stats"] if "stats" in out["devices"][0] else out["devices"][0]
requested, active = map(int, open("ledger").read().split())
print(find(stats, "requested_bytes", "all", "allocated") == requested, find(stats, "active_bytes", "all", "current") == active)
print(peak < 2 * os.path.getsize("long.pickle"))
END
