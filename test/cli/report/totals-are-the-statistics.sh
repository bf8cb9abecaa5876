# Over all files with PyTorch's own answers: the rows add up to the total, and the total is what memory_stats() says.
cat >check.py <<'PYTHON'
import glob, json, os, subprocess, sys

data = sys.argv[1]
checked = 0
for path in sorted(glob.glob(data + "/*.pickle.gz")):
    answers = path[: -len(".pickle.gz")] + ".stats.json"
    if not os.path.exists(answers):
        continue
    with open(answers) as file:
        told = json.load(file)

    def report(*options):
        done = subprocess.run(["cudamem", "report", "--json", *options, path], capture_output=True, text=True, check=True)
        made = json.loads(done.stdout)
        for key in ("bytes", "requested", "waste", "pending", "count", "alive"):
            assert sum(row[key] for row in made["rows"]) == made["total"][key], (path, options, key)
        return made["total"]

    for group in ("stack", "function", "stream", "category", "size"):
        live = report("--group", group)
        assert live["bytes"] == told["active_bytes.all.current"], (path, group)
        assert live["bytes"] - live["pending"] == told["allocated_bytes.all.current"], path
        assert live["requested"] == told["requested_bytes.all.current"], path
        assert live["count"] == told["active.all.current"], path
    waste = report("--by", "waste")
    assert waste["waste"] == told["active_bytes.all.current"] - told["requested_bytes.all.current"], path
    every = report("--by", "allocated", "--group", "category")
    assert every["bytes"] == told["requested_bytes.all.allocated"], (path, every)
    assert every["count"] == told["allocation.all.allocated"], path
    assert every["alive"] == told["active.all.current"], path
    leak = report("--by", "leak")
    assert leak["bytes"] == live["bytes"], path
    checked += 1
print(checked, "files" if checked > 10 else "files are too few")
PYTHON
python3 check.py "$DATA"
