"""Memory while the interpreter ends: in functions for the exit, in destructors, and in threads that nobody waits for."""
import atexit
import sys
import threading

import device


@atexit.register
def last():
    device.take(64 * 1024)


class Kept:
    def __init__(self, take):
        self.take = take

    def __del__(self):
        self.take(65 * 1024)


def forever():
    device.join()
    size = device.ctypes.c_size_t(4096)
    while True:
        address = device.ctypes.c_uint64()
        device.cuda.cuMemAlloc_v2(device.ctypes.byref(address), size)
        device.cuda.cuMemFree_v2(address)


device.begin()
kept = Kept(device.take)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=forever, daemon=True).start()
device.take(66 * 1024)
