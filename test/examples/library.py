#!/usr/bin/env python3
"""The library from Python, by ctypes: allocate, record with Python's stacks, save a snapshot.

usage: library.py [LIBCUDAMEM]
"""
import ctypes
import pickle
import sys

library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libcudamem.so.0")


class Error(ctypes.Structure):
    """cudamem_error"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("status", ctypes.c_int32), ("has_offset", ctypes.c_int32),
                ("offset", ctypes.c_uint64), ("message", ctypes.c_char * 480)]


def call(name, *arguments):
    error = Error(struct_size=ctypes.sizeof(Error))
    if getattr(library, name)(*arguments, ctypes.byref(error)):
        raise RuntimeError(f"{name}: {error.message.decode()}")


def allocate(size, device=0, stream=None):
    pointer = ctypes.c_void_p()
    call("cudamem_alloc", ctypes.c_size_t(size), ctypes.c_int(device), ctypes.c_void_p(stream), ctypes.byref(pointer))
    return pointer


def build_model():
    blocks = []
    for size in (1, 2, 30):
        blocks.append(allocate(size << 20))
    return blocks


call("cudamem_record_memory_history", None)  # all defaults, as torch.cuda.memory._record_memory_history()
model = build_model()
call("cudamem_free", model[1])
allocated = ctypes.c_uint64()
call("cudamem_memory_allocated", ctypes.c_int(0), ctypes.byref(allocated))
print("allocated", allocated.value)
call("cudamem_dump_snapshot", None)  # dump_snapshot.pickle

with open("dump_snapshot.pickle", "rb") as file:
    snapshot = pickle.load(file)
for entry in snapshot["device_traces"][0]:
    names = [frame["name"] for frame in entry.get("frames", []) if frame["filename"].endswith("library.py")]
    print(entry["action"], entry["size"], *names)
