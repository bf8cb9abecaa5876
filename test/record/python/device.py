"""What the scripts of this folder share: memory of the simulated device, and what the stack is where it is taken.

A line for each allocation, told apart by their sizes: "frames SIZE inner;...;outer", a frame as file|line|function.
"""
import ctypes
import os
import sys
import traceback

cuda = ctypes.CDLL("libcuda.so.1")
_lock_kept = ctypes.PyDLL("libcuda.so.1")  # the same library; Python's lock is kept during the call


_context = ctypes.c_void_p()


def begin():
    assert cuda.cuInit(0) == 0
    assert cuda.cuCtxCreate_v2(ctypes.byref(_context), 0, 0) == 0


def join():
    """Of a thread, before it takes memory."""
    assert cuda.cuCtxSetCurrent(_context) == 0


def show(size):
    """The stack of the caller, as Python itself tells it."""
    frames = []
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        frames.append(f"{frame.f_code.co_filename}|{line}|{frame.f_code.co_name}")
    os.write(1, f"frames {size} {';'.join(frames)}\n".encode())  # whole, also from threads and while Python ends
    return size


def take(size, library=cuda):
    address = ctypes.c_uint64()
    assert (show(size), library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))[1] == 0
    return address


def take_locked(size):
    return take(size, _lock_kept)


def give(address):
    assert cuda.cuMemFree_v2(address) == 0


def take_quietly(size):
    address = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address
