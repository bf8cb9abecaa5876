"""A second interpreter in the same thread, and after it the first one again."""
import sys

import device

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        sys.exit("no interpreters")

SOURCE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def inside():
    address = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(8192)) == 0
inside()
print("inside", 8192, flush=True)
"""

device.begin()
device.take(4096)
if sys.version_info >= (3, 13):
    second = interpreters.create("legacy")
    failed = interpreters.run_string(second, SOURCE)
elif sys.version_info >= (3, 12):
    second = interpreters.create(isolated=False)
    failed = interpreters.run_string(second, SOURCE)
else:
    second = interpreters.create()
    failed = interpreters.run_string(second, SOURCE)
if failed:
    sys.exit(f"not run: {failed}")
interpreters.destroy(second)
device.take(5120)
