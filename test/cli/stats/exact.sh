# needs: python3
cudamem stats --memory-limit 3002197606 --json "$DATA/pressure.pickle.gz" >ours
python3 - "$DATA/pressure.stats.json" <<'END'
import json, sys
def flat(prefix, node):
    for key, value in node.items():
        if isinstance(value, dict):
            yield from flat(prefix + key + ".", value)
        else:
            yield prefix + key, value
ours, theirs = dict(flat("", json.load(open("ours"))["devices"][0]["stats"])), json.load(open(sys.argv[1]))
print(len(ours), [key for key in theirs if ours.get(key) != theirs[key]])
END
