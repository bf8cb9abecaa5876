#!/usr/bin/env python3
"""PyTorch on our allocator, with its optional hooks set by address.

usage: torch_allocator.py [LIBCUDAMEM]
"""
import ctypes
import sys

import torch

path = sys.argv[1] if len(sys.argv) > 1 else "libcudamem.so.0"
library = ctypes.CDLL(path)


def address(name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "cudamem_torch_alloc", "cudamem_torch_free")
hooks = allocator.allocator()
hooks.set_init_fn(address("cudamem_torch_init"))
hooks.set_reset_fn(address("cudamem_torch_reset"))
hooks.set_memory_fraction_fn(address("cudamem_torch_memory_fraction"))
hooks.set_base_alloc_fn(address("cudamem_torch_base_alloc"))
hooks.set_record_stream_fn(address("cudamem_torch_record_stream"))
library.cudamem_torch_records_streams(1)  # now that the hook is set, frees trust it
torch.cuda.memory.change_current_allocator(allocator)

tensor = torch.ones(1000, 1000, device="cuda")
print(torch.cuda.get_allocator_backend(), float(tensor.sum()))

# What torch.cuda.memory_summary() would say of its own allocator:
text = ctypes.c_char_p()
library.cudamem_memory_summary(ctypes.c_int(0), ctypes.c_int(1), ctypes.byref(text), None)
print(text.value.decode())
