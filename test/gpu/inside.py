"""What the recorder saw inside PyTorch against PyTorch's own recorder in the same process.

usage: inside.py OURS.pickle THEIRS.pickle [frames|history]
OURS is our recording written as a pickle.  Prints what agrees; exit status 1 if anything differs.  With `frames`, the
Python frames, too: at least 99 of 100 entries must have the same.  With `history`, OURS was recorded with --torch-history:
every entry of theirs must be there as it is.
"""
import pickle
import sys


def load(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def blocks_of(snapshot):
    """The living blocks, by address."""
    return {block["address"]: block["size"] for segment in snapshot["segments"] if segment["device"] == 0
            for block in segment["blocks"] if block["state"] == "active_allocated"}


def calls_of(snapshot, wanted=("alloc", "free_requested", "oom")):
    return [entry for entry in snapshot["device_traces"][0] if entry["action"] in wanted]


def of_framework(entries, theirs):
    """Ours without the memory that others took: segments of their own, which are written as one block each."""
    known = {entry["addr"] for entry in theirs if entry["action"] == "alloc"}
    return [entry for entry in entries if entry["addr"] in known]


def place_of(frame):
    return frame["filename"], frame["line"], frame["name"]


def python_frames(entry):
    return [place_of(frame) for frame in entry.get("frames", []) if frame["filename"].endswith(".py")
            or frame["filename"].startswith("<")]


def rounded(size):
    return max((size + 511) // 512 * 512, 512)


def compare_histories(ours, theirs):
    """Every entry of PyTorch, in order, beside those of others.  It computes times anew for each snapshot."""
    keys = ("action", "addr", "device_free", "size", "stream")
    wanted = theirs["device_traces"][0]
    entries = iter(ours["device_traces"][0])
    missing, others = 0, 0
    for entry in wanted:
        for mine in entries:
            if abs(mine["time_us"] - entry["time_us"]) < 1000 and all(
                    mine.get(key) == entry.get(key) for key in keys) and list(map(place_of, mine.get("frames", []))) == list(
                    map(place_of, entry.get("frames", []))):
                break
            others += 1
        else:
            missing += 1
    print(f"history: {len(wanted)} entries of PyTorch, {missing} not in ours, {others} of others between them")
    return missing


ours, theirs = load(sys.argv[1]), load(sys.argv[2])
if "history" in sys.argv:
    sys.exit(compare_histories(ours, theirs) != 0)
mine, other = calls_of(ours), calls_of(theirs)
mine_blocks = [entry for entry in mine if entry["action"] != "oom"]
other_blocks = [entry for entry in other if entry["action"] != "oom"]
mine_blocks = of_framework(mine_blocks, other_blocks)
bad = 0
differ = []
for index, (a, b) in enumerate(zip(mine_blocks, other_blocks)):
    if (a["action"], a["addr"]) != (b["action"], b["addr"]) or a["size"] < b["size"] or (
            "roundup" not in sys.argv and a["size"] % 512):
        differ.append(index)
print(f"blocks: {len(other_blocks)} entries of PyTorch, {len(mine_blocks)} of ours, {len(differ)} differ", end="")
print(f", first at {differ[0]}: {mine_blocks[differ[0]]} {other_blocks[differ[0]]}" if differ else "")
bad += bool(differ) or len(mine_blocks) < len(other_blocks)
tight = sum(a["size"] == rounded(b["size"]) for a, b in zip(mine_blocks, other_blocks))
print(f"sizes: {tight} of {len(other_blocks)} are the request rounded to 512, the others larger blocks that were not split")
streams = sum(a.get("stream") == b["stream"] for a, b in zip(mine_blocks, other_blocks))
print(f"streams: {streams} of {len(other_blocks)} agree")
ooms = [entry for entry in mine if entry["action"] == "oom"], [entry for entry in other if entry["action"] == "oom"]
print(f"oom: {len(ooms[0])} of ours, {len(ooms[1])} of PyTorch")
if "frames" in sys.argv:
    same = sum(python_frames(a) == python_frames(b) for a, b in zip(mine_blocks, other_blocks))
    print(f"python frames: {same} of {len(other_blocks)} agree")
    for a, b in zip(mine_blocks, other_blocks):
        if python_frames(a) != python_frames(b):
            print(" first difference:", a["action"], python_frames(a)[:12], "theirs", python_frames(b)[:12])
            break
    bad += same * 100 < 99 * len(other_blocks)
sys.exit(bad != 0)
