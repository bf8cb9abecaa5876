# needs: python3
cudamem tune --json --memory-limit 3.5GiB "$DATA/frag.pickle.gz" >tune.json
echo $?
python3 -c '
import json
tune = json.load(open("tune.json"))
assert not tune["fits"] and tune["export"] is None
assert all(row["ooms"] > 0 and not row["fits"] for row in tune["results"] + [tune["baseline"]])
assert tune["memory_limit_bytes"] < tune["smallest_limit_bytes"] <= tune["smallest_peak_bytes"]
'
