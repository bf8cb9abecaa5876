# needs: python3
# One is one, and a cut end is compared as far as it is known.
python3 - <<'END'
import pickle
entry = dict(size=2097152, stream=0, time_us=1, addr=0x7F0000000000, frames=[])
trace = [dict(entry, action="segment_alloc"), dict(entry, action="alloc", size=512)]
pickle.dump({"segments": [], "device_traces": [trace], "allocator_settings": {}}, open("one.pickle", "wb"), 4)
END
cudamem replay --verify one.pickle
cudamem convert --to bin "$DATA/frag.pickle.gz@#500" -o part.bin
cudamem replay --verify part.bin | sed 's/, but for .*//'
