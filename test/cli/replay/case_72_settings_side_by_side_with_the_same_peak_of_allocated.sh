# needs: python3
# Settings are compared in one table.  What the program asked for is the same in every row and what is allocated differs
# by rounding only; what is reserved is what the settings change.
cudamem replay --json --conf '' --conf expandable_segments:True --conf max_split_size_mb:64 "$DATA/whatif.pickle.gz" |
    python3 -c '
import json, sys
rows = json.load(sys.stdin)["results"]
print([row["conf"] for row in rows])
allocated = [row["peak_allocated_bytes"] for row in rows]
print(len({row["stats"]["requested_bytes.all.peak"] for row in rows}), (max(allocated) - min(allocated)) / min(allocated) < 0.02,
      len({row["peak_reserved_bytes"] for row in rows}))'
