# needs: python3
# Every number of the explanation against stats, the blocks, and replays of the same moment.
cat >check.py <<'X'
import json, subprocess, sys
def ask(*words):
    return json.loads(subprocess.run(["cudamem", *words, "--json"], stdout=subprocess.PIPE, check=True).stdout)
for name in ("frag", "frag_seed11", "frag_seed13"):
    for number in range(1, 4):
        file = f"{sys.argv[1]}/{name}.pickle.gz@oom{number}"
        told = ask("explain", file)
        stats = {}
        for line in subprocess.run(["cudamem", "stats", file], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            key, _, number_text = line.partition(" ")
            stats[key] = number_text
        memory, request = told["memory"], told["request"]
        subprocess.run(["cudamem", "convert", "--to", "json", "-o", "cut.json", file], check=True)
        cut = json.load(open("cut.json"))
        segments = cut["segments"]
        blocks = [block for segment in segments for block in segment["blocks"]]
        holes = [block["size"] for block in blocks if block["state"] == "inactive"]
        def same(what, got, wanted):
            if got != wanted:
                print(name, number, what, got, "instead of", wanted)
        same("reserved", memory["reserved_bytes"], int(stats["reserved_bytes.all.current"]))
        same("allocated", memory["allocated_bytes"], int(stats["allocated_bytes.all.current"]))
        same("requested", memory["requested_bytes"], int(stats["requested_bytes.all.current"]))
        same("active", memory["allocated_bytes"] + memory["pending_bytes"], int(stats["active_bytes.all.current"]))
        same("segments", memory["segments"], len(segments))
        same("free", memory["free_bytes"], memory["reserved_bytes"] - memory["allocated_bytes"] - memory["pending_bytes"])
        same("holes", (memory["holes"], memory["free_bytes"], memory["largest_hole_bytes"]), (len(holes), sum(holes), max(holes)))
        same("by reason", (sum(x["holes"] for x in told["holes_by_reason"].values()), sum(x["bytes"] for x in told["holes_by_reason"].values())), (len(holes), sum(holes)))
        entry = cut["device_traces"][0][-1]
        same("request", (request["bytes"], request["device_free_bytes"], request["stream"]), (entry["size"], entry["device_free"], entry["stream"]))
        limit = told["settings"]["limit_bytes"]
        same("limit", limit, told["room"]["at_least_bytes"])
        same("bound", told["room"]["below_bytes"], memory["reserved_bytes"] + request["segment_bytes"])
        for trial in told["settings"]["trials"]:
            row = ask("replay", "--memory-limit", str(limit), "--conf", trial["conf"], file)["results"][0]
            same("trial " + trial["conf"], (trial["peak_reserved_bytes"], trial["ooms"]), (row["peak_reserved_bytes"], row["ooms"]))
            before = file.rsplit("@", 1)[0] + f"@#{request['entry']}"
            earlier = ask("replay", "--memory-limit", str(limit), "--conf", trial["conf"], before)["results"][0]["ooms"]
            same("served by " + trial["conf"], trial["fits"], row["ooms"] == earlier)
        in_way = told["in_the_way"]
        same("in the way", in_way["bytes"], sum(block["bytes"] for block in in_way["list"]))
        print(name, number, told["cause"], len(told["settings"]["trials"]), "settings", in_way["blocks"], "blocks in the way")
X
python3 check.py "$DATA"
