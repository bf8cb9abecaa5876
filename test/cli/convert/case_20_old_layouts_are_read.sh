# needs: python3
# Files of 1.11 (a bare list), 1.13 (history), 2.0 (history and traces without times): addresses add up, stacks are the
# history's, and the same object comes back, through snapshot.bin too.
cat >make.py <<'END'
import pickle
base, room, frames = 0x7F0000000000, 2 << 20, [{"filename": "a.py", "name": "f", "line": 3}]
history = [{"addr": base, "real_size": 1000, "frames": frames}, {"addr": base, "real_size": 10, "frames": []}]
def segment(first, second, **more):
    return {"device": 0, "address": base, "total_size": room, "allocated_size": 1024, "active_size": 1024, "stream": 0,
            "segment_type": "small", **more, "blocks": [{"size": 1024, "state": "active_allocated", **first},
                                                        {"size": room - 1024, "state": "inactive", **second}]}
files = {
    "1.11": [segment({}, {})],
    "1.13": [segment({"history": history}, {})],
    "2.0": {"segments": [segment({"requested_size": 1000, "history": history}, {"requested_size": 0}, requested_size=1000)],
            "device_traces": [[{"action": "segment_alloc", "addr": base, "size": room, "stream": 0},
                               {"action": "alloc", "addr": base, "size": 1000, "stream": 0, "frames": frames},
                               {"action": "snapshot", "addr": 0, "size": 0, "stream": 0},
                               {"action": "oom", "device_free": 555, "size": 99999, "stream": 0}]]},
}
for name, content in files.items():
    pickle.dump(content, open(name, "wb"), 4)
END
python3 make.py
for name in 1.11 1.13 2.0; do
    echo "== $name"
    cudamem convert --to csv --view blocks $name
    cudamem convert --to folded --view memory $name
    cudamem stats "[ar]*_bytes.all.current" $name
    cudamem convert --to bin $name -o bin && cudamem convert --to pickle bin -o back
    python3 -c 'import pickle, sys; print(*(pickle.load(open(n, "rb")) for n in sys.argv[1:])) if len(sys.argv) < 3 else print(pickle.load(open(sys.argv[1], "rb")) == pickle.load(open(sys.argv[2], "rb")))' $name back
done
cudamem trace 2.0 | head -6
