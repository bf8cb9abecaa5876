/*
 * cudamem/pluggable.h: an allocator out of a library of yours in place of ours, by PyTorch's signatures:
 *
 *     void *my_alloc(ptrdiff_t size, int device, void *stream);
 *     void my_free(void *pointer, ptrdiff_t size, int device, void *stream);
 *
 * With it as the current one cudamem_alloc() and cudamem_free() call these: no rounding, no caching, no statistics, no
 * history (CUDAMEM_ERROR_UNSUPPORTED), and no lock of ours is held meanwhile, so that they may call this library's other
 * functions.  Thread safe; errors as in cudamem/allocator.h.
 */
#ifndef CUDAMEM_PLUGGABLE_H
#define CUDAMEM_PLUGGABLE_H

#include <cudamem/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudamem_pluggable cudamem_pluggable;

typedef void *(*cudamem_pluggable_alloc)(ptrdiff_t size, int device, void *stream);
typedef void (*cudamem_pluggable_free)(void *pointer, ptrdiff_t size, int device, void *stream);

/* Load the library and find both functions in it.  *allocator is the caller's, for cudamem_pluggable_close().
 * CUDAMEM_ERROR_NOT_FOUND: the library cannot be loaded, or lacks one; the message says which.
 * torch.cuda.memory.CUDAPluggableAllocator */
int cudamem_pluggable_load(const char *path, const char *alloc_name, const char *free_name,
                           cudamem_pluggable **allocator, cudamem_error *error);

/* The loaded functions, for callers of their own (a pool's callbacks, say).  Each place may be NULL. */
int cudamem_pluggable_functions(const cudamem_pluggable *allocator, cudamem_pluggable_alloc *alloc,
                                cudamem_pluggable_free *free, cudamem_error *error);

/* What PyTorch can be told beside these two; NULL: nothing is done, and the base of a pointer is itself. */
typedef struct cudamem_pluggable_hooks {
    size_t struct_size;
    void (*init)(int device_count);                       /* before the first allocation */
    void (*reset)(void);                                  /* cudamem_empty_cache() */
    void (*memory_fraction)(double fraction, int device); /* cudamem_set_memory_fraction() */
    void *(*base_alloc)(void *pointer, size_t *size);     /* cudamem_base() */
    void (*record_stream)(void *pointer, void *stream);   /* cudamem_record_stream() */
} cudamem_pluggable_hooks;

/* To be set before the allocator becomes the current one (CUDAMEM_ERROR_STATE).  PyTorch's set_init_fn, set_reset_fn,
 * set_memory_fraction_fn, set_base_alloc_fn, set_record_stream_fn */
int cudamem_pluggable_set_hooks(cudamem_pluggable *allocator, const cudamem_pluggable_hooks *hooks,
                                cudamem_error *error);

/* Make it the current one.  CUDAMEM_ERROR_STATE: an allocator is in use already, ours or another.
 * torch.cuda.memory.change_current_allocator */
int cudamem_change_allocator(cudamem_pluggable *allocator, cudamem_error *error);

/* The current one, NULL: ours.  torch.cuda.memory._get_current_allocator */
cudamem_pluggable *cudamem_current_allocator(void);

/* Give it up; NULL is fine.  CUDAMEM_ERROR_STATE: it is the current one and stays. */
int cudamem_pluggable_close(cudamem_pluggable *allocator, cudamem_error *error);

#ifdef __cplusplus
}
#endif
#endif
