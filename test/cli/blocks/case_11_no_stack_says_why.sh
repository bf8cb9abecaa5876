# Before recording; a context that takes no stacks (one empty list for all); a thread without Python frames.
cat >make.py <<'PYTHON'
import pickle

BASE, none = 0x7F0000000000, []
stack = [{"filename": "a.py", "name": "f", "line": 3}]


def entry(slot, frames):
    return {"action": "alloc", "addr": BASE + slot * 512, "size": 512, "stream": 0, "time_us": slot, "frames": frames}


thread = []
trace = [entry(1, none), entry(2, none), entry(3, thread), entry(4, stack)]
blocks = [{"address": BASE + slot * 512, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": frames}
          for slot, frames in enumerate([none, none, none, thread, stack])]
segment = {"device": 0, "address": BASE, "total_size": 2560, "allocated_size": 2560, "active_size": 2560,
           "requested_size": 2560, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False,
           "frames": none, "blocks": blocks}
with open("three.pickle", "wb") as out:
    pickle.dump({"segments": [segment], "device_traces": [trace], "allocator_settings": {}, "external_annotations": []}, out, 4)
with open("off.pickle", "wb") as out:
    pickle.dump({"segments": [segment], "device_traces": [], "allocator_settings": {}, "external_annotations": []}, out, 4)
PYTHON
python3 make.py
cudamem blocks three.pickle
cudamem report three.pickle
cudamem report --group category three.pickle
cudamem blocks -n 1 off.pickle
