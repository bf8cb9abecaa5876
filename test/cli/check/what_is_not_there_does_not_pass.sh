# A gate that has nothing to judge stays shut: no trace at all, a device that is not there, a device without a trace.
cat >make.py <<'PYTHON'
import pickle
def segment(device):
    return {"device": device, "address": 1 << 21, "total_size": 1 << 21, "allocated_size": 512, "active_size": 512,
            "requested_size": 512, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False,
            "frames": [], "blocks": [
                {"address": 1 << 21, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": []},
                {"address": (1 << 21) + 512, "size": (1 << 21) - 512, "requested_size": 0, "state": "inactive", "frames": []}]}
def entry(action, size):
    return {"action": action, "addr": 1 << 21, "size": size, "stream": 0, "time_us": 1, "frames": []}
def write(name, segments, traces):
    pickle.dump({"segments": segments, "device_traces": traces}, open(name, "wb"), protocol=4)
write("nothing.pickle", [], [])
write("empty.pickle", [], [[]])
write("half.pickle", [segment(0), segment(1)], [[entry("segment_alloc", 1 << 21), entry("alloc", 512)], []])
PYTHON
python3 make.py
for file in nothing empty; do
    cudamem check --complete --no-leaks --max-growth 1GiB --no-oom $file.pickle
    echo $?
done
cudamem check --no-oom --no-leaks --complete --device 7 "$DATA/graphs.pickle.gz" 2>&1 | sed "s,$DATA/,,"
cudamem check --complete --device 0 half.pickle
echo $?
cudamem check --complete --no-leaks --device 1 half.pickle
echo $?
cudamem check --max-growth 1GiB half.pickle
echo $?
