"""What torch.cuda.memory does with a pluggable allocator: functions by name, hooks by address."""
import ctypes

current = None
ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)


class Hooks:
    def __init__(self, library, alloc_name, free_name):
        self.alloc = ctypes.cast(getattr(library, alloc_name), ALLOC)
        self.free = ctypes.cast(getattr(library, free_name), FREE)
        self.record = None

    def set_init_fn(self, address):
        self.init = ctypes.CFUNCTYPE(None, ctypes.c_int)(address)

    def set_reset_fn(self, address):
        self.reset = ctypes.CFUNCTYPE(None)(address)

    def set_memory_fraction_fn(self, address):
        self.fraction = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_int)(address)

    def set_base_alloc_fn(self, address):
        self.base = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))(address)

    def set_record_stream_fn(self, address):
        self.record = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)

    def take(self, size):
        pointer = self.alloc(size, 0, None)
        assert pointer, "out of memory"
        length = ctypes.c_size_t()
        assert self.base(pointer, ctypes.byref(length)) <= pointer and length.value >= size
        return pointer

    def used_by(self, pointer, stream):
        self.record(pointer, stream)

    def give(self, pointer, size):
        self.free(pointer, size, 0, None)
        self.reset()


class CUDAPluggableAllocator:
    def __init__(self, path, alloc_name, free_name):
        self.hooks = Hooks(ctypes.CDLL(path), alloc_name, free_name)

    def allocator(self):
        return self.hooks


def change_current_allocator(allocator):
    global current
    current = allocator.allocator()
    current.init(1)
    current.fraction(1.0, 0)
