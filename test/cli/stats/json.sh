# needs: python3
cudamem stats --json "$DATA/mempool.pickle.gz" | python3 -c '
import json, sys
print(sorted(json.load(sys.stdin)))'
