/*
 * cudamem/device.h: what the devices themselves say: free memory, and the processes on them.
 *
 * Processes come from NVIDIA's management library (libnvidia-ml.so.1), loaded when asked for.  It counts all devices of
 * the machine; an ordinal of ours is one of those that CUDA_VISIBLE_DEVICES leaves.  Thread safe; errors as in
 * cudamem/allocator.h.
 */
#ifndef CUDAMEM_DEVICE_H
#define CUDAMEM_DEVICE_H

#include <cudamem/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that the device has free, for every process, and in all.  Makes the device's primary context.  On failure both
 * are 0.  torch.cuda.mem_get_info */
int cudamem_mem_get_info(int device, uint64_t *free_bytes, uint64_t *total_bytes, cudamem_error *error);

typedef struct cudamem_gpu_process {
    size_t struct_size;
    int64_t pid;
    uint64_t used;      /* bytes of the device's memory, 0 where not told */
    int32_t has_used;   /* 0: the driver does not tell (containers) */
    uint32_t gpu;       /* the device's number for the management library */
    const char *name;   /* of the program, "" where not known; valid during the visit */
} cudamem_gpu_process;

/* Call visit for each process that computes on the device (-1: the current one); non-zero from visit ends it, and is the
 * answer.  CUDAMEM_ERROR_NOT_FOUND: no management library, or no such device. */
int cudamem_visit_gpu_processes(int device, int (*visit)(void *self, const cudamem_gpu_process *process), void *self,
                                cudamem_error *error);

/* The same as text, a line a process.  Where the driver is not loaded the text says so, as PyTorch's does, and the answer is
 * CUDAMEM_OK.  *text is the caller's, for cudamem_text_free().  torch.cuda.list_gpu_processes */
int cudamem_list_gpu_processes(int device, char **text, cudamem_error *error);

#ifdef __cplusplus
}
#endif
#endif
