# Four snapshots: what rises every time comes first, what rises once and stays after it, what falls not at all.
cat >make.py <<'PYTHON'
import pickle

LEVELS = {"leak": (4, 11, 25, 31), "once": (1, 90, 90, 90), "falls": (5, 9, 3, 50), "same": (7, 7, 7, 7)}
for number in range(4):
    blocks, trace, address = [], [], 0x7F0000000000
    for name, levels in LEVELS.items():
        frames = [{"filename": "a.py", "name": name, "line": 3}]
        size = levels[number] * 1024
        trace.append({"action": "alloc", "addr": address, "size": size, "stream": 0, "time_us": address, "frames": frames})
        blocks.append({"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames})
        address += size
    total = sum(block["size"] for block in blocks)
    segment = {"device": 0, "address": 0x7F0000000000, "total_size": total, "allocated_size": total, "active_size": total,
               "requested_size": total, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": [], "blocks": blocks}
    with open(f"{number}.pickle", "wb") as out:
        pickle.dump({"segments": [segment], "device_traces": [trace], "allocator_settings": {}, "external_annotations": []}, out, 4)
PYTHON
python3 make.py
cudamem diff --bytes 0.pickle 1.pickle 2.pickle 3.pickle
cudamem diff --bytes --across ranks 0.pickle 1.pickle 2.pickle 3.pickle
cudamem diff --exit-code --min-delta 1M 0.pickle 1.pickle 2.pickle; echo $?
cudamem diff --json -n 1 0.pickle 1.pickle 2.pickle 3.pickle | sed -n '/"stacks"/,$p'
cudamem diff --group segment 0.pickle 1.pickle 2.pickle; echo $?
cudamem diff --sort before 0.pickle 1.pickle 2.pickle; echo $?
