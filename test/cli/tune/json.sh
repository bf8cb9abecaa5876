# needs: python3
cudamem tune --json "$DATA/whatif.pickle.gz" >tune.json
cudamem replay --json --conf expandable_segments:True "$DATA/whatif.pickle.gz" >replay.json
python3 -c '
import json
tune, replay = json.load(open("tune.json")), json.load(open("replay.json"))
print(*tune)
print(*tune["baseline"])
best = tune["results"][0]
assert list(best) == list(tune["baseline"])
assert tune["tried"] >= 60
assert best["peak_reserved_bytes"] <= replay["results"][0]["peak_reserved_bytes"]
assert best["saved_bytes"] == tune["baseline"]["peak_reserved_bytes"] - best["peak_reserved_bytes"] > 0
assert tune["fits"] and best["fits"] and tune["memory_limit_bytes"] is None
assert best["conf"] in tune["export"]
'
