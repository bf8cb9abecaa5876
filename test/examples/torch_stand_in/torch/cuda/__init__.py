from . import memory


def get_allocator_backend():
    return "pluggable" if memory.current else "native"
