# needs: python3
# What happened between @#101 and @#4000, with the state after it; the same from a pickle, from snapshot.bin, and up to a moment.
cudamem convert --to bin "$DATA/train.pickle.gz" -o one.bin
cudamem convert --to json --entries 101..4000 "$DATA/train.pickle.gz" -o a.json
cudamem convert --to json --entries 101..4000 one.bin -o b.json
cudamem convert --to json one.bin@#4000 -o c.json
cmp a.json b.json && python3 -c '
import json
a, c = json.load(open("a.json")), json.load(open("c.json"))
trace, longer = a["device_traces"][0], c["device_traces"][0]
print(len(trace), trace[0]["entry"], trace[-1]["entry"], len(longer), trace == longer[101:])
def known(whole): # how large a block was only the trace from its beginning tells
    return [(s["address"], s["total_size"], [(b["address"], b["requested_size"]) for b in s["blocks"] if b["state"] != "inactive"])
            for s in whole["segments"]]
print(known(a) == known(c), len(a["segments"]))'
