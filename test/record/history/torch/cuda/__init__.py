"""A caching allocator that can do what the tests ask of it: blocks from the front of new segments, freed in any order."""
import ctypes
import os

from . import memory
from .. import _C

_initialized = False
_queued = []
_driver = None
_hooks = None
MIB = 1 << 20


def _lazy_call(function):
    if _initialized:
        function()
    else:
        _queued.append(function)


def check(result):
    if result:
        raise RuntimeError("driver: %d" % result)


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int8), ("index", ctypes.c_int8)]


def init():
    global _initialized, _driver, _hooks
    _driver = ctypes.CDLL("libcuda.so.1")
    _hooks = ctypes.CDLL(os.environ["TORCH_STAND_IN"], mode=ctypes.RTLD_GLOBAL)
    context = ctypes.c_void_p()
    check(_driver.cuInit(0))
    check(_driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(_driver.cuCtxSetCurrent(context))
    _initialized = True
    for function in _queued:
        function()


def take(size):
    """Memory straight from the driver."""
    address = ctypes.c_uint64()
    result = _driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
    return None if result == 2 else check(result) or address.value


def give(address):
    check(_driver.cuMemFree_v2(ctypes.c_uint64(address)))


def report(address, size):
    # the preloaded definition stands first, as for PyTorch's own libraries
    function = ctypes.CDLL(None)["_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"]
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, Device]
    function.restype = None
    function(address, size, 0, 0, Device(1, 0))


def rounded(size):
    return max((size + 511) // 512 * 512, 512)


def alloc(size):
    frames = memory.frames()
    small, wanted = size <= MIB, rounded(size)
    segment = next((s for s in memory.segments if (s["segment_type"] == "small") == small and s["room"] >= wanted), None)
    if segment is None:
        total = 2 * MIB if small else 20 * MIB if wanted < 10 * MIB else (wanted + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
        address = take(total)
        if address is None:
            memory.note("oom", 0, wanted, frames)
            refused = ctypes.CDLL(None)["_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"]
            refused.argtypes = [ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, Device]
            refused(wanted, 0, 0, Device(1, 0))
            for observer in _C.observers:
                observer(0, 0, 0, 0)
            raise MemoryError("out of memory")
        memory.note("segment_alloc", address, total, frames)
        segment = {"device": 0, "address": address, "total_size": total, "allocated_size": 0, "active_size": 0,
                   "requested_size": 0, "stream": 0, "segment_type": "small" if small else "large",
                   "segment_pool_id": (0, 0), "is_expandable": False, "frames": frames, "room": total,
                   "blocks": [{"address": address, "size": total, "requested_size": 0, "state": "inactive", "frames": []}]}
        memory.segments.append(segment)
    free = segment["blocks"].pop()
    block = {"address": free["address"], "size": wanted, "requested_size": size, "state": "active_allocated",
             "frames": frames}
    rest = {"address": free["address"] + wanted, "size": free["size"] - wanted, "requested_size": 0, "state": "inactive",
            "frames": []}
    segment["blocks"] += [block, rest]
    segment["room"] -= wanted
    for key, amount in (("allocated_size", wanted), ("active_size", wanted), ("requested_size", size)):
        segment[key] += amount
    memory.note("alloc", block["address"], size, frames)
    report(block["address"], wanted)
    return block["address"]


def free(address):
    """Of the last block of its segment."""
    frames = memory.frames()
    segment = next(s for s in memory.segments if s["address"] <= address < s["address"] + s["total_size"])
    rest, block = segment["blocks"].pop(), segment["blocks"].pop()
    report(address, -block["size"])
    memory.note("free_requested", address, block["requested_size"], frames)
    memory.note("free_completed", address, block["requested_size"], frames)
    segment["blocks"].append({"address": address, "size": block["size"] + rest["size"], "requested_size": 0,
                              "state": "inactive", "frames": []})
    segment["room"] += block["size"]
    for key, amount in (("allocated_size", block["size"]), ("active_size", block["size"]),
                        ("requested_size", block["requested_size"])):
        segment[key] -= amount
