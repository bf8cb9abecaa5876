# needs: python3 unsanitized
# Tables: a row an event, segment and block; what was allocated adds up to the summary's total; integers are exact.
cudamem record --sim -o recorded.bin "$BUILD/test/programs/example" >/dev/null 2>&1
python3 "$DATA/../cli/make_long.py" long.pickle >/dev/null
cat >sums.py <<'END'
import csv, json, subprocess, sys, io
file = sys.argv[1]
def out(*words):
    return subprocess.run(["cudamem", *words, file], check=True, capture_output=True, text=True).stdout
def rows(view):
    return list(csv.DictReader(io.StringIO(out("convert", "--to", "csv", "--view", view), newline="")))
whole = json.loads(out("convert", "--to", "json"))
events, segments, blocks = rows("entries"), rows("segments"), rows("blocks")
print(len(events) == sum(map(len, whole["device_traces"])) > 0, len(segments) == len(whole["segments"]) > 0,
      len(blocks) == sum(len(s["blocks"]) for s in whole["segments"]) > 0)
names = {s["segment"]: s for s in segments}
print(all(b["segment"] in names for b in blocks), sum(int(b["size"]) for b in blocks) == sum(int(s["total_size"]) for s in segments))
stats = dict(line.split() for line in out("stats", "requested_bytes.all.allocated").splitlines())
action = sys.argv[2]
total = sum(int(e["size"]) for e in events if e["action"] == action)
print(stats["requested_bytes.all.allocated"].lstrip(">=") == str(total), total > 0)
END
python3 sums.py long.pickle alloc
python3 sums.py recorded.bin segment_alloc # no allocator stands between the program and the driver
