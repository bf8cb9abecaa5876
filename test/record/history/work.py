"""What a script does with PyTorch: blocks of it, and memory of another library beside them."""
import os
import signal
import sys
import time
import torch

what = sys.argv[1] if len(sys.argv) > 1 else "train"
torch.cuda.init()
first = torch.cuda.alloc(1000)
other = torch.cuda.take(3 << 20)
second = torch.cuda.alloc(2000)
large = torch.cuda.alloc(5 << 20)
torch.cuda.free(second)
third = torch.cuda.alloc(777)
kept = torch.cuda.take(5000)
torch.cuda.give(other)
if what == "oom":
    for attempt in range(2):
        try:
            torch.cuda.alloc(1 << 44)
        except MemoryError:
            print("refused")
if what == "wait":
    print("waiting", flush=True)
    time.sleep(20)
if what == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if what == "fork":
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
print("done", os.environ.get("PYTHONPATH", "").count("own"))
