# needs: python3
# Rows for each device of the recording, or for the one that is asked for.
python3 - "$DATA" <<'END'
import gzip, pickle, sys
one, two = (pickle.loads(gzip.open(f"{sys.argv[1]}/{name}.pickle.gz").read()) for name in ("leak_before", "graphs"))
for segment in two["segments"]:
    segment["device"] = 1
one["segments"] += two["segments"]
one["device_traces"] = [one["device_traces"][0], two["device_traces"][0]]
pickle.dump(one, open("two.pickle", "wb"), 4)
END
cudamem replay --bytes --conf '' --conf expandable_segments:True two.pickle
cudamem replay --bytes --device 1 two.pickle
cudamem replay --verify two.pickle
cudamem replay --verify --json two.pickle | tr -d ' \n'
echo
cudamem replay --device 5 two.pickle
