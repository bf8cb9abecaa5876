# A beginning that was overwritten: the most so far is a bound, and a gate that cannot tell does not open.
cudamem convert --to bin --entries 4000..9000 "$DATA/frag.pickle.gz" -o part.bin
cudamem info part.bin | grep '^trace.lost_entries'
cudamem check --complete --max-peak 1TiB --no-leaks part.bin
echo $?
cudamem check --max-peak 1GiB part.bin | cut -f 1,2
python3 - <<'PYTHON'
import pickle
pickle.dump({"segments": [{"device": 0, "address": 1 << 21, "total_size": 1 << 21, "allocated_size": 512, "active_size": 512,
                           "requested_size": 512, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
                           "is_expandable": False, "frames": [],
                           "blocks": [{"address": 1 << 21, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": []},
                                      {"address": (1 << 21) + 512, "size": (1 << 21) - 512, "requested_size": 0, "state": "inactive", "frames": []}]}],
             "device_traces": [[]]}, open("untraced.pickle", "wb"), protocol=4)
PYTHON
cudamem check --no-leaks --complete --max-growth 1GiB --no-oom untraced.pickle
echo $?
