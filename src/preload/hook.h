/*
 * What every wrapper does: enter, call the real driver, say what happened, leave.
 *
 *     struct hook hook;
 *     hook_begin(&hook, CALL_cuMemAlloc_v2, __builtin_return_address(0));
 *     CUresult result = driver.cuMemAlloc_v2(address, bytes);
 *     if (result == CUDA_SUCCESS) hook_allocated(...) else hook_failed(...)
 *     hook_end(&hook);
 *
 * Only the outermost wrapper of a thread records: a driver that calls itself through its exported names, or a context
 * whose making allocates, must not be counted twice.  An inner one still passes everything through.  Nothing here
 * allocates, locks or asks the dynamic linker; outside a stream capture the driver is asked which device is current,
 * during one the answer is the thread's last.
 */
#ifndef PRELOAD_HOOK_H
#define PRELOAD_HOOK_H

#include "preload/driver.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

struct hook {
    const void *caller;
    uint16_t call;
    bool records;  /* the outermost wrapper, and recording is on */
    bool undoable; /* a free was recorded, which the driver may still refuse */
    uint8_t kind;
    uint16_t device;
    bool device_known; /* set by the wrapper: not that of the current context */
    int64_t stream;
    bool stream_unknown;
    uint64_t pool;
    uint64_t address, size; /* of the recorded free */
};

void hook_begin(struct hook *hook, enum driver_call call, const void *caller);
void hook_end(struct hook *hook);
bool hook_is_outermost(void); /* between the two */

/* An event made elsewhere. */
void hook_record(const struct record_event *event);

/* The device that the calling thread's context is on; learns its name and size the first time. */
uint16_t hook_device(void);

/* Memory came (segment_alloc).  requested is RECORD_UNKNOWN if it is the size. */
void hook_allocated(struct hook *hook, uint8_t kind, uint64_t address, uint64_t size, uint64_t requested);

/* A call for memory failed: an oom entry if it was for want of memory, before the program learns of it. */
void hook_failed(struct hook *hook, CUresult result, uint8_t kind, uint64_t requested);

/* Memory is about to go (segment_free), and what the driver said to it. */
void hook_free(struct hook *hook, uint64_t address);
void hook_free_result(struct hook *hook, CUresult result);

/* Memory that went with something else: no call of its own, no way to fail. */
void hook_gone(struct hook *hook, uint64_t address);

/* Virtual memory: physical memory mapped and unmapped. */
void hook_mapped(struct hook *hook, uint8_t kind, uint16_t device, uint64_t address, uint64_t size, bool mapped);

/* Physical memory that is mapped nowhere begins or ceases to be there, at an address of nothing (unplaced.h). */
void hook_unmapped(struct hook *hook, uint16_t device, uint64_t address, uint64_t size, bool exists);

/*
 * An allocator's blocks, by what it reports of them itself; its own memory comes by the calls above.  These ask neither
 * the driver nor the linker.  A free is recorded only of a block that this process had: a forked child lets go of
 * what its parent held.  A refusal comes after those of the driver that led to it, which have entries of their own.
 */
void hook_block_allocated(const void *caller, uint16_t device, uint64_t address, uint64_t size,
                          const int64_t *stream); /* NULL: not known */
void hook_block_freed(const void *caller, uint64_t address);
void hook_block_refused(const void *caller, uint16_t device, uint64_t size);

#endif
