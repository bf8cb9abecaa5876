"""CuPy with its pool switched off: each array is a request; then with the pool."""
import cupy

cupy.cuda.set_allocator(None)
arrays = []
for i in range(10):
    arrays.append(cupy.empty((i + 1) * 5000, dtype=cupy.uint8))
    print("alloc", (i + 1) * 5000)
for i in range(5):
    arrays[i] = None
    print("free", (i + 1) * 5000)
pool = cupy.cuda.MemoryPool()
cupy.cuda.set_allocator(pool.malloc)
x = cupy.arange(1 << 20, dtype=cupy.float32)
y = cupy.arange(1 << 20, dtype=cupy.float32)
del y
print("pool", pool.total_bytes())
