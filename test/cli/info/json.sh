# needs: python3
cp "$DATA/mempool_oom.pickle.gz" file.gz
cudamem info --json file.gz | python3 -c '
import json, sys
info = json.load(sys.stdin)
print(sorted(info))
print(info["trace"]["entries"], info["actions"], [d["reserved"] for d in info["devices"]])'
