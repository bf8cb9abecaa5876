# needs: python3 unsanitized
# A C program recorded: Python loads the pickle, no code is named in it, and the keys are PyTorch's.
cudamem record --sim -o recorded.bin "$BUILD/test/programs/example" >/dev/null 2>&1
cudamem convert --to pickle recorded.bin -o recorded.pickle
python3 - <<'END'
import pickle, pickletools
bytes = open("recorded.pickle", "rb").read()
named = {code.name for code, _, _ in pickletools.genops(bytes)}
print(sorted(named & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "PERSID", "BINPERSID", "EXT1"}))
content = pickle.loads(bytes)
print({"segments", "device_traces", "allocator_settings", "external_annotations"} <= set(content))
segment, entry = content["segments"][0], content["device_traces"][0][0]
print({"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type",
       "segment_pool_id", "is_expandable", "frames", "blocks"} <= set(segment))
print({"address", "size", "requested_size", "state", "frames"} <= set(segment["blocks"][0]))
print({"action", "addr", "size", "stream", "time_us", "frames"} <= set(entry), {"name", "filename", "line"} <= set(entry["frames"][0]))
END
