"""Random requests under PyTorch's own recorder; leaves NAME.pickle, NAME.summary.txt, NAME.stats.json in this folder.

usage: torch_history.py NAME SEED [FRACTION]
"""
import json
import random
import sys
import torch

name, seed = sys.argv[1], int(sys.argv[2])
torch.cuda.init()
if len(sys.argv) > 3:
    torch.cuda.set_per_process_memory_fraction(float(sys.argv[3]))
torch.cuda.memory._record_memory_history(context="all", stacks="python")
random.seed(seed)
streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
live = []
for step in range(3000):
    what = random.random()
    if what < 0.55 or not live:
        size = int(2 ** random.uniform(6, 26)) + random.randrange(500)
        with torch.cuda.stream(random.choice(streams)):
            try:
                live.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                pass
    elif what < 0.62:
        random.choice(live).record_stream(random.choice(streams))
    elif what < 0.997:
        live.pop(random.randrange(len(live)))
    else:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    if len(live) > 60:
        del live[random.randrange(30):]
torch.cuda.synchronize()
torch.cuda.memory._dump_snapshot(name + ".pickle")
with open(name + ".summary.txt", "w", encoding="utf-8") as file:
    file.write(torch.cuda.memory_summary())
with open(name + ".stats.json", "w", encoding="utf-8") as file:
    json.dump(torch.cuda.memory_stats(), file)
