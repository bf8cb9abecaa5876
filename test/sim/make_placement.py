"""Text fixtures for the placement rule, from recorded traces: python3 make_placement.py SNAPSHOT.pickle.gz OUT.txt.

Lines: "seed ADDRESS SIZE HOLE_END" for the segments in chunks that the driver had set up before (found as those before
the first one at the start of a chunk of its own), "open ADDRESS" for where the open space ended then, and "alloc ADDRESS
SIZE" / "free ADDRESS" for what the rule has to explain.
"""
import gzip
import pickle
import sys

CHUNK = 32 << 20


def up(value, step):
    return (value + step - 1) // step * step


def main(source, target):
    with gzip.open(source) as file:
        snapshot = pickle.load(file)
    events = [(e["action"], e["addr"], e["size"]) for trace in snapshot["device_traces"] for e in trace
              if e["action"] in ("segment_alloc", "segment_free")]
    first = next(i for i, (action, address, size) in enumerate(events)
                 if action == "segment_alloc" and address % CHUNK == 0)
    assert all(action == "segment_alloc" for action, _, _ in events[:first])
    lines = ["# " + source.rsplit("/", 1)[-1].split(".")[0] + ": segments of a real run on driver 580"]
    # Segments of one old chunk that follow each other are one seed, whose hole the next ones fill.
    seeds = []
    for _, address, size in events[:first]:
        size = up(size, 2 << 20)
        if seeds and seeds[-1][0] + seeds[-1][1] == address and address // CHUNK == seeds[-1][0] // CHUNK:
            seeds[-1][2].append((address, size))
            seeds[-1][1] += size
        else:
            seeds.append([address, size, [(address, size)]])
    for start, size, parts in seeds:
        lines.append("seed %#x %d %#x" % (parts[0][0], parts[0][1], up(start + size, CHUNK)))
        lines += ["place %#x %d" % part for part in parts[1:]]
    _, address, size = events[first]
    lines.append("open %#x" % (address + up(size, CHUNK)))
    for action, address, size in events[first:]:
        lines.append("alloc %#x %d" % (address, size) if action == "segment_alloc" else "free %#x" % address)
    with open(target, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
