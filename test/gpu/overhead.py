"""The time of an allocation and its free under PyTorch at a Python depth of 20, and of a training step; prints one line
of JSON.

usage: overhead.py [none|python|all]     what PyTorch's own recorder is to record
"""
import json
import sys
import time
import torch

stacks = sys.argv[1] if len(sys.argv) > 1 else "none"
torch.cuda.init()
if stacks != "none":
    torch.cuda.memory._record_memory_history(context="all", stacks=stacks, max_entries=200000)


def pairs(count):
    start = time.perf_counter()
    for _ in range(count):
        torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    return (time.perf_counter() - start) / count * 1e9


def deep(depth, function, *arguments):
    return deep(depth - 1, function, *arguments) if depth else function(*arguments)


def steps(count):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        loss = model(batch, batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count * 1e3


keep = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
deep(17, pairs, 3000)
pair = sorted(deep(17, pairs, 3000) for _ in range(9))
model = torch.nn.Transformer(512, 8, 6, 6, 2048, batch_first=True).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(32, 256, 512, device="cuda")
steps(5)
step = sorted(steps(10) for _ in range(7))
print(json.dumps({"pair_ns": pair[4], "pair_least_ns": pair[0], "step_ms": step[3], "step_least_ms": step[0]}))
