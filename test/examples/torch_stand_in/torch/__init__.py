"""A stand-in of PyTorch for torch_allocator.py: one tensor whose memory comes from the current allocator."""
from . import cuda


class Tensor:
    def __init__(self, count):
        self.count = count
        self.pointer = cuda.memory.current.take(count * 4)

    def sum(self):
        cuda.memory.current.used_by(self.pointer, 0)
        return self.count

    def __del__(self):
        cuda.memory.current.give(self.pointer, self.count * 4)


def ones(rows, columns, device):
    assert device == "cuda"
    return Tensor(rows * columns)
