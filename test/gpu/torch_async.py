"""backend:cudaMallocAsync: each tensor is a request of the driver; prints how many, for the checks."""
import torch

tensors = []
count = 0
for i in range(50):
    tensors.append(torch.empty((i + 1) * 1000, dtype=torch.uint8, device="cuda"))
    print("alloc", (i + 1) * 1000)
for i in range(0, 50, 2):
    tensors[i] = None
    print("free", (i + 1) * 1000)
torch.cuda.synchronize()
print("backend", torch.cuda.get_allocator_backend())
