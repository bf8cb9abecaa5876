# needs: python3
# Snapshots of PyTorch, one a rank: each replays, and is written back, as it did alone.
for name in train frag; do gzip -dc "$DATA/$name.pickle.gz" >$name.pickle; done
cudamem merge train.pickle frag.pickle -o both.bin || exit
cudamem replay both.bin | cut -f 1-4,14
cudamem summary -a both.bin | grep -v '^|'
cudamem convert --to pickle both.bin -o both.pickle
python3 - <<'END'
import pickle
train, frag, both = (pickle.load(open(name + ".pickle", "rb")) for name in ("train", "frag", "both"))
traces = [trace for one in (train, frag) for trace in one["device_traces"]]
print("traces are the same:", traces == both["device_traces"])
for one in (train, frag):
    for segment in one["segments"]:
        segment["device"] += 0 if one is train else len(train["device_traces"])
print("segments are the same:", train["segments"] + frag["segments"] == both["segments"])
END
