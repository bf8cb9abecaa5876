"""check.py OUTPUT SNAPSHOT [DEPTH]: the frames that a script printed are those that the recording has.

The recording comes as JSON (cudamem convert); its allocations are told apart by size.  Python's frames alone are compared:
native ones stand between them.  With DEPTH only so many from the inner end are there.
"""
import json
import sys


def stacks_of(snapshot):
    frames, stacks = snapshot["frames"], snapshot["stacks"]
    for entry in (entry for trace in snapshot["device_traces"] for entry in trace):
        stack = []
        number = entry.get("frames")
        while number:
            frame, number = stacks[number]
            stack.append(frames[frame])
        yield entry, stack


def text_of(frame):
    return f"{frame['filename']}|{frame['line']}|{frame['name']}"


def main():
    wanted = {}
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("frames "):
                _, size, frames = line.rstrip("\n").split(" ", 2)
                wanted[int(size)] = frames.split(";")
    with open(sys.argv[2], encoding="utf-8") as file:
        snapshot = json.load(file)
    depth = int(sys.argv[3]) if len(sys.argv) > 3 else None
    seen = set()
    for entry, stack in stacks_of(snapshot):
        size = entry.get("size")
        if entry["action"] != "segment_alloc" or size not in wanted:
            continue
        got = [text_of(frame) for frame in stack if "python" in frame.get("flags", [])]
        if got != wanted[size][:depth]:
            sys.exit(f"allocation of {size}:\n  recorded {got}\n  wanted   {wanted[size][:depth]}")
        seen.add(size)
    if seen != set(wanted) or not wanted:
        sys.exit(f"{len(wanted)} allocations, {len(seen)} in the recording; missing {sorted(set(wanted) - seen)[:5]}")
    print(f"{len(wanted)} stacks as Python tells them")


main()
