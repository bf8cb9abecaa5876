"""A snapshot whose trace takes several chunks of snapshot.bin: make_long.py FILE [STEPS]."""
import pickle
import sys

BASE, SLOTS, ROOM = 0x7F0000000000, 64, 2 << 20
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 400000
FRAMES = [[{"filename": "a.py", "name": name, "line": 3}] for name in ("make", "step")]


def entry(action, address, size, time, frames):
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames}


random, live = 1, {}
trace = [entry("segment_alloc", BASE, SLOTS * ROOM, 0, FRAMES[0])]
for step in range(STEPS):
    random = (random * 6364136223846793005 + 1442695040888963407) % 2**64
    slot, address = (random >> 40) % SLOTS, BASE + (random >> 40) % SLOTS * ROOM
    if slot in live:
        trace.append(entry("free_completed", address, live.pop(slot)[0], step, FRAMES[0]))
    else:
        live[slot] = (random >> 20) % 1000000 + 1, FRAMES[random >> 62 & 1]
        trace.append(entry("alloc", address, live[slot][0], step, live[slot][1]))
blocks, active = [], 0
for slot in range(SLOTS):
    address, (asked, frames) = BASE + slot * ROOM, live.get(slot, (0, []))
    size = -(-asked // 512) * 512
    active += size
    if size:
        blocks.append({"address": address, "size": size, "requested_size": asked, "state": "active_allocated", "frames": frames})
    blocks.append({"address": address + size, "size": ROOM - size, "requested_size": 0, "state": "inactive", "frames": []})
segment = {
    "device": 0, "address": BASE, "total_size": SLOTS * ROOM, "allocated_size": active, "active_size": active,
    "requested_size": sum(size for size, _ in live.values()), "stream": 0, "segment_type": "large",
    "segment_pool_id": (0, 0), "is_expandable": False, "frames": FRAMES[0], "blocks": blocks,
}
with open(sys.argv[1], "wb") as out:
    pickle.dump({"segments": [segment], "device_traces": [trace], "allocator_settings": {}, "external_annotations": []}, out, 4)
print(sum(entry["size"] for entry in trace if entry["action"] == "alloc"), active)
