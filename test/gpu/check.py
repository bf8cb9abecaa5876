"""check.py KIND DUMP-TEXT PROGRAM-OUTPUT: do the recorded entries agree with what the program said it did?

KIND is `calls` ("alloc N" and "free N" lines are entries, in order), `contains` (they are among the entries), `torch`
(segment statistics), `torch_expandable`, `pool` (CuPy: calls, and the pool's bytes), or `some` (there are entries).
Prints one line; exit status 0 if they agree.
"""
import json
import sys
from collections import Counter

kind, dump_path, output_path = sys.argv[1:]
entries, live, device = [], [], None
for line in open(dump_path):
    words = line.split()
    if words[0] == "entry":
        facts = dict(w.split("=", 1) for w in words[3:] if "=" in w)
        facts["stack"] = line.partition(" stack=")[2]
        entries.append((words[1], int(words[2]), facts))
    elif words[0] == "live":
        live.append(int(words[1]))
    elif words[0] == "device" and device is None:
        device = dict(w.split("=", 1) for w in words[2:] if "=" in w)
said = [line.split() for line in open(output_path, errors="replace")]
allocs = [e for e in entries if e[0] in ("segment_alloc", "segment_map")]
frees = [e for e in entries if e[0] in ("segment_free", "segment_unmap")]
failed = [e for e in frees if int(e[2].get("flags", 0)) & 8]


def finish(ok, text):
    print(text)
    sys.exit(0 if ok else 1)


def wanted(word):
    return [int(w[1]) for w in said if len(w) == 2 and w[0] == word and w[1].isdigit()]


sizes = [e[1] for e in allocs]
freed = [e[1] for e in frees]
if kind == "calls":
    ok = bool(sizes) and sizes == wanted("alloc") and freed == wanted("free") and not failed
    ok = ok and sum(live) == sum(sizes) - sum(freed)
    refused = sum(w[0] == "refused:" for w in said if w)
    ooms = sum(e[0] == "oom" for e in entries)
    finish(ok and ooms == refused, f"{len(sizes)} allocations {sum(sizes)} B of {len(wanted('alloc'))} {sum(wanted('alloc'))} B, "
           f"{len(freed)} frees of {len(wanted('free'))}, {ooms} oom of {refused}, live {sum(live)} B")
if kind in ("contains", "pool"):
    more, less = Counter(sizes), Counter(wanted("alloc"))
    more_f, less_f = Counter(freed), Counter(wanted("free"))
    ok = bool(less) and all(more[s] >= n for s, n in less.items()) and all(more_f[s] >= n for s, n in less_f.items())
    text = f"{len(sizes)} allocations, {sum(less.values())} said, {len(freed)} frees, {sum(less_f.values())} said"
    if kind == "pool":
        pool = sum(int(w[1]) for w in said if w and w[0] == "pool")
        unsaid = list((more - less).elements())
        ok = ok and sum(unsaid) >= pool
        text += f", {sum(unsaid)} B beside them, pool {pool} B"
    finish(ok, text)
if kind.startswith("torch"):
    stats = next(json.loads(" ".join(w[1:])) for w in said if w and w[0] == "stats")
    # what others in the process take (cuBLAS 64 MiB a handle, its small tables) is told apart by the stack
    if kind == "torch_expandable":
        ours = [e for e in allocs if e[2]["kind"] == "virtual"]
        gone = [e for e in frees if e[2]["kind"] == "virtual"]
        total, back = sum(e[1] for e in ours), sum(e[1] for e in gone)
        ok = total == stats["reserved_bytes.all.allocated"] and back == stats["reserved_bytes.all.freed"]
        text = f"mapped {total} B of {stats['reserved_bytes.all.allocated']}, unmapped {back} of {stats['reserved_bytes.all.freed']}"
        finish(ok and sum(e[1] for e in ours) - back == stats["reserved_bytes.all.current"], text)
    ours = [e for e in allocs if e[2]["kind"] == "plain" and "CUDACachingAllocator" in e[2]["stack"]]
    addresses = {e[2]["address"] for e in ours}
    gone = [e for e in frees if e[2]["address"] in addresses]
    total, back = sum(e[1] for e in ours), sum(e[1] for e in gone)
    ok = (len(ours), total) == (stats["segment.all.allocated"], stats["reserved_bytes.all.allocated"])
    ok = ok and bool(ours) and (len(gone), back) == (stats["segment.all.freed"], stats["reserved_bytes.all.freed"])
    ok = ok and total - back == stats["reserved_bytes.all.current"] and not failed
    finish(ok, f"{len(ours)} segments {total} B of {stats['segment.all.allocated']} {stats['reserved_bytes.all.allocated']} B, "
           f"{len(gone)} freed {back} B of {stats['segment.all.freed']} {stats['reserved_bytes.all.freed']} B, "
           f"{len(allocs) - len(ours)} others")
finish(len(entries) > 0, f"{len(entries)} entries, {len(sizes)} allocations {sum(sizes)} B, live {sum(live)} B")
