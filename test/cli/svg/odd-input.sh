# needs: python3
# Pictures of what is odd: nothing, no blocks, no bytes, a thousand streams, names that try to break out.
cat >make.py <<'END'
import pickle
def segment(address, size, blocks, stream=0, name="f"):
    frames = [{"name": name, "filename": "/a/" + name, "line": 3}]
    made, at = [], address
    for part, state in blocks:
        made.append({"address": at, "size": part, "requested_size": part, "state": state, "frames": frames})
        at += part
    return {"device": 0, "address": address, "total_size": size, "allocated_size": 0, "active_size": 0, "requested_size": 0,
            "stream": stream, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
            "blocks": made}
def write(name, segments):
    pickle.dump({"segments": segments, "device_traces": [[]]}, open(name + ".pickle", "wb"), protocol=4)
write("nothing", [])
write("no-blocks", [segment(1 << 40, 2 << 20, [])])
write("no-bytes", [segment(1 << 40, 0, [(0, "active_allocated")])])
write("one", [segment(1 << 40, 2 << 20, [(2 << 20, "active_allocated")])])
write("streams", [segment((i + 1) << 30, 2 << 20, [(1 << 20, "active_allocated"), (1 << 20, "inactive")], i) for i in range(1000)])
write("names", [segment(1 << 40, 1 << 20, [(1 << 20, "active_allocated")], 0, "<&\"'>]]>\x00\x1b[31m\u202e\ud800 \u65e5\u672c")])
write("state", [segment(1 << 40, 1 << 20, [(1 << 20, "<b>unheard of</b>")])])
END
python3 make.py
for name in nothing no-blocks no-bytes one streams names state; do
    for view in map segments memory; do
        cudamem svg --$view --color stack $name.pickle -o $name.svg || echo "$view of $name: $?"
        python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' $name.svg || echo "$view of $name is no XML"
        [ "$(wc -c <$name.svg)" -lt 2000000 ] || echo "$view of $name is large"
    done
    cudamem svg --map $name.pickle -o - | sed -n "s/.*<text id=\"sub\"[^>]*>\(.*\)<\/text>/$name: \1/p"
done
cudamem svg --map streams.pickle -o - | sed -n 's/.*<text class="h"[^>]*>\(.*\)<\/text>/\1/p' | tail -n 1
