# One entry, sizes of nothing, names with markup, controls and right-to-left text, a thousand streams, no trace at all.
# needs: python3
cat >make.py <<'PYTHON'
import pickle
NAMES = ["<script>&\"'", "\x00\x1b[31m", "\u202egnp.exe", "]]>"]


def entry(action, address, size, stream=0, name="f", **more):
    return {"action": action, "addr": address, "size": size, "stream": stream,
            "frames": [{"name": name, "filename": name + ".py", "line": 1}], **more}


def save(path, trace, annotations=()):
    with open(path, "wb") as out:
        pickle.dump({"segments": [], "device_traces": [trace], "allocator_settings": {},
                     "external_annotations": list(annotations)}, out, 4)


save("none.pickle", [])
save("one.pickle", [entry("alloc", 4096, 512, time_us=5)])
save("nothing.pickle", [entry("alloc", 4096, 0), entry("free_completed", 4096, 0)])
save("names.pickle", [entry("alloc", 4096 * i, 1 << 20, name=NAMES[i % 4], time_us=i) for i in range(8)] +
     [entry("free_completed", 4096 * i, 1 << 20, time_us=10 + i) for i in range(8)] +
     [{"action": "oom", "device_free": 7, "size": 1 << 30, "stream": 0, "frames": [], "time_us": 30}],
     [{"stage": stage, "name": name, "device": 0, "time_us": time} for name in NAMES for stage, time in (("START", 2), ("END", 9))])
save("streams.pickle", [entry(action, 4096 * i, 1 << 20, stream=i * 3, time_us=at + i) for action, at in
                        (("alloc", 0), ("free_completed", 1000)) for i in range(1000)])
PYTHON
python3 make.py
for name in one nothing names streams none; do
    echo "== $name"
    cudamem svg --timeline $name.pickle -o $name.svg || { echo "exit $?"; continue; }
    python3 -c 'import sys, xml.etree.ElementTree as E
for e in E.parse(sys.argv[1]).getroot().iter():
    if e.get("class") == "head" or e.get("id") in ("sub", "caption"):
        print(e.text)' $name.svg
done
ls *.svg
for bad in '--x time nothing.pickle' '--entries 9..9 names.pickle' '--time 1..2 nothing.pickle' '--detail 999999 names.pickle' '--device 4 names.pickle'; do
    cudamem svg --timeline $bad -o bad.svg
    echo "exit $?"
done
[ ! -e bad.svg ]
