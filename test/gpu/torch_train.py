"""A small training run; prints the statistics of segments that PyTorch itself keeps, for the checks."""
import json
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)
).cuda()
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(5):
    x = torch.randn(64 * (step + 1), 1024, device="cuda")
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(round(loss.item(), 4))
big = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
del big
torch.cuda.synchronize()
torch.cuda.empty_cache()
keep = torch.zeros(12345, device="cuda")
try:
    torch.empty(1 << 44, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    print("refused")
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
wanted = [
    "segment.all.allocated", "segment.all.current", "segment.all.freed", "segment.all.peak",
    "reserved_bytes.all.allocated", "reserved_bytes.all.current", "reserved_bytes.all.freed", "reserved_bytes.all.peak",
    "num_device_alloc", "num_device_free",
]
print("losses", losses)
print("backend", torch.cuda.get_allocator_backend())
print("stats", json.dumps({key: stats.get(key, 0) for key in wanted}))
