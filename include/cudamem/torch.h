/*
 * cudamem/torch.h: this library as PyTorch's allocator.
 *
 *     alloc = torch.cuda.memory.CUDAPluggableAllocator("libcudamem.so", "cudamem_torch_alloc", "cudamem_torch_free")
 *     torch.cuda.memory.change_current_allocator(alloc)
 *
 * These have the signatures of PyTorch's pluggable allocators; the optional hooks are set by address, with ctypes:
 *
 *     library = ctypes.CDLL("libcudamem.so")
 *     address = lambda name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
 *     alloc.allocator().set_record_stream_fn(address("cudamem_torch_record_stream"))
 *     library.cudamem_torch_records_streams(1)
 *
 * PyTorch tells which other streams used a block only by the record-stream hook.  Until it is known to be set, by
 * cudamem_torch_records_streams(1) or by its first call, a freed block waits for an event on every stream that was seen
 * on its device (streams must live as long as memory does then, as PyTorch's do).  The hooks for pools take a C++
 * function object: cudamem.hpp has them.
 *
 * Failures have no way out through these signatures: an allocation that fails is NULL.  Thread safe.
 */
#ifndef CUDAMEM_TORCH_H
#define CUDAMEM_TORCH_H

#include <cudamem/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For CUDAPluggableAllocator: size in bytes; NULL for size 0 and for no memory. */
void *cudamem_torch_alloc(ptrdiff_t size, int device, void *stream);
void cudamem_torch_free(void *pointer, ptrdiff_t size, int device, void *stream);

/* The optional hooks, in PyTorch's order: set_init_fn, set_reset_fn, set_memory_fraction_fn, set_base_alloc_fn,
 * set_record_stream_fn. */
void cudamem_torch_init(int device_count);
void cudamem_torch_reset(void); /* torch.cuda.empty_cache() */
void cudamem_torch_memory_fraction(double fraction, int device);
void *cudamem_torch_base_alloc(void *pointer, size_t *size); /* NULL: not one of our blocks */
void cudamem_torch_record_stream(void *pointer, void *stream);

/* For the pool hooks, which cudamem.hpp wraps: requests that the filter takes go to the pool; drop(self) is called
 * once the scope has ended.  The filter runs under the device's lock and must not call this library.  0, or a status. */
int cudamem_torch_begin_pool(int device, uint64_t first, uint64_t second, int (*filter)(void *self, void *stream),
                             void (*drop)(void *self), void *self);
int cudamem_torch_end_pool(int device, uint64_t first, uint64_t second);
int cudamem_torch_release_pool(int device, uint64_t first, uint64_t second);

/* 1: the record-stream hook is set, frees trust it.  0: it is not (as at the start). */
void cudamem_torch_records_streams(int is_set);

#ifdef __cplusplus
}
#endif
#endif
