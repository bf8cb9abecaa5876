/*
 * The public library from inside: one for the process, with a caching allocator (src/alloc) on the driver for each
 * device that was used.  Files of src/api share this; nobody else sees it.
 *
 * Devices are opened when first used and stay.  Each has one lock, held for the calls of its allocator: inside it no
 * call of this library may be made (a thread that tries is refused, never stopped), and no callback of the user runs
 * but trace trackers, whose rule that is.  Memory callbacks of pools and observers run without it.  Lock order:
 * the settings', then devices by ordinal.
 *
 * The fast path of cudamem_alloc() and cudamem_free() reads library_ways once: while it is 0 nothing but the device's own
 * allocator has a say.
 */
#ifndef API_LIBRARY_H
#define API_LIBRARY_H

#include "alloc/allocator.h"
#include "api/lock.h"
#include "api/report.h"
#include "base/table.h"
#include "device/driver_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LIBRARY_DEVICES 64
#define LIBRARY_DRIVER_STATUS 1000 /* statuses of memory devices: the driver's results, out of the allocator's way */

/* --- devices (library.c, devices.c) ------------------------------------------------------------------------------- */

struct pool_return; /* pool.h */

struct library_device {
    struct library_lock lock;
    int ordinal;
    atomic_bool ready;          /* everything below is there; it stays */
    struct driver_memory *memory;
    struct memory_device under; /* the driver */
    struct allocator *allocator;
    CUcontext context;          /* the primary one, retained */
    uint64_t total_bytes;
    double fraction;            /* of the memory, 1: no limit */
    bool unlocks_for_segments;  /* release_lock_on_cudamalloc */

    /* Under the lock. */
    int64_t recent_stream;      /* known to be of this context, as are those of the table */
    struct table streams;
    struct pool_return *returned; /* segments of pools with callbacks, to be given back without the lock */
    unsigned scopes;            /* open ones of pools and captures */
    int driver_error;           /* the driver's last failure */
};
extern struct library_device library_devices[LIBRARY_DEVICES];

struct library_thread { /* what a thread is in the midst of */
    bool inside;         /* a call that holds, or waits for, a device's lock */
    bool observes;       /* an observer of failed requests */
    unsigned held;       /* depth of library_hold() */
    unsigned in_pool;    /* depth of pools' memory callbacks: no scope of this thread is in force */
    int recent;          /* the device of its last request */
};
extern __thread struct library_thread library_thread;

void library_begin(void); /* before the first lock is taken; any number of times */

/* The device of an ordinal, opened if need be; -1: of the current context, device 0 if there is none. */
int library_device(int ordinal, struct library_device **device, struct error *err);
/* The same for looking only: *device is NULL if it was not opened. */
int library_device_if_used(int ordinal, struct library_device **device, struct error *err);
/* Opened devices in order, for loops: from ordinal (0 to begin) on; NULL: no more. */
struct library_device *library_next_device(int ordinal);
bool library_is_used(void); /* any device was opened */

/* Take a device's lock for a call; CUDAMEM_ERROR_REENTERED if this thread is inside one (nothing is locked then). */
int library_enter(struct library_device *device, struct error *err);
static inline bool library_try_enter(struct library_device *device) /* false: it is inside one */
{
    if (library_thread.inside)
        return false;
    library_thread.inside = true;
    if (!library_thread.held)
        lock_take(&device->lock);
    return true;
}

/* Let it go; what pools have to give back goes back now. */
void library_give_back(struct library_device *device);
static inline void library_leave(struct library_device *device)
{
    bool gives_back = device->returned != NULL;
    if (!library_thread.held)
        lock_open(&device->lock);
    library_thread.inside = false;
    if (gives_back)
        library_give_back(device);
}

/* Inside library_enter(): let go for a callback of the user, take it again. */
void library_pause(struct library_device *device);
void library_resume(struct library_device *device);
/* This thread is inside a call that holds a lock: CUDAMEM_ERROR_REENTERED with a sentence, else 0. */
int library_check_outside(struct error *err);

/* The settings' lock; nothing is locked if this thread holds everything. */
int library_settings_enter(struct error *err);
void library_settings_leave(void);

/* All locks, as cudamem_free_mutex_lock(); may nest.  Calls of the thread that holds them go on as ever. */
int library_hold(struct error *err);
int library_let_go(struct error *err);

/* What an allocator's status means for the caller. */
int library_status(struct library_device *device, int status, struct error *err);

/* The device whose allocator has an active block at this address, locked (library_leave() ends it); else
 * CUDAMEM_ERROR_INVALID. */
int library_enter_owner(uint64_t address, struct library_device **device, struct error *err);

/* Inside library_enter(): the stream is of the device's primary context, or CUDAMEM_ERROR_INVALID. */
int library_know_stream(struct library_device *device, int64_t stream, struct error *err);
/* cudamem_record_stream() and cudamem_base() for blocks of ours. */
int library_record_stream(uint64_t address, int64_t stream, struct error *err);
int library_base(uint64_t address, uint64_t *base, uint64_t *size, struct error *err);

/* --- the driver (driver.c) ---------------------------------------------------------------------------------------- */

#define LIBRARY_DRIVER_FUNCTIONS(F)                                                                              \
    F(cuInit)                                                                                                    \
    F(cuDeviceGetCount)                                                                                          \
    F(cuDeviceGet)                                                                                               \
    F(cuCtxGetDevice)                                                                                            \
    F(cuCtxPushCurrent_v2)                                                                                       \
    F(cuCtxPopCurrent_v2)                                                                                        \
    F(cuCtxSynchronize)                                                                                          \
    F(cuDevicePrimaryCtxRetain)                                                                                  \
    F(cuMemGetInfo_v2)                                                                                           \
    F(cuMemAlloc_v2)                                                                                             \
    F(cuMemFree_v2)                                                                                              \
    F(cuMemHostAlloc)                                                                                            \
    F(cuMemFreeHost)                                                                                             \
    F(cuEventCreate)                                                                                             \
    F(cuEventDestroy_v2)                                                                                         \
    F(cuEventRecord)                                                                                             \
    F(cuEventQuery)                                                                                              \
    F(cuEventSynchronize)                                                                                        \
    F(cuStreamGetCtx)                                                                                            \
    F(cuStreamGetCaptureInfo_v2)                                                                                 \
    F(cuThreadExchangeStreamCaptureMode)                                                                         \
    F(cuGetErrorName)

struct library_driver {
#define LIBRARY_DRIVER_MEMBER(name) __typeof__(&name) name;
    LIBRARY_DRIVER_FUNCTIONS(LIBRARY_DRIVER_MEMBER)
#undef LIBRARY_DRIVER_MEMBER
};

/* The driver, loaded and started at the first call; NULL with a sentence: there is none (asked again the next time). */
const struct library_driver *library_driver(struct error *err);
const struct driver_memory_functions *library_memory_functions(void); /* found with it */
/* The driver's name for a result, "CUDA_ERROR_...". */
const char *library_driver_word(int result);
/* A status for a driver's result: OUT_OF_MEMORY, SHUT_DOWN, DRIVER, and a sentence that begins with `what`. */
int library_driver_status(int result, const char *what, struct error *err);
int library_device_count(int *count, struct error *err);
/* Make the device's context current around calls of the driver. */
int library_push_context(struct library_device *device, struct error *err);
void library_pop_context(void);

/* --- settings (settings.c) ---------------------------------------------------------------------------------------- */

/* Those in force; the text last set, as the snapshot has it ("" if none).  conf may be NULL. */
void library_settings(struct settings *settings, char *conf, size_t conf_size);
/* CUDAMEM_ERROR_USAGE: the environment's text is no settings, and nobody has set others. */
int library_settings_check(struct error *err);

/* --- what takes part (ways.c) ------------------------------------------------------------------------------------- */

enum library_way {
    LIBRARY_UNCACHED = 1,       /* caching is switched off */
    LIBRARY_FOREIGN = 2,        /* a pluggable allocator is the current one */
    LIBRARY_DEBUG = 4,          /* CUDAMEM_DEBUG=abort: calls keep their stacks */
    LIBRARY_CAPTURE_ALLOC = 8,  /* history: contexts of requests */
    LIBRARY_CAPTURE_FREE = 16,  /* and of frees and flushes */
};
extern atomic_uint library_ways;

/* History: who captures stacks and keeps entries.  One at a time, which must stay for the life of the process; NULL ends
 * its part.  Set under all locks, so no call sees half of it. */
struct library_history {
    /* Before the lock is taken: the number of this call's context (0: none), kept by the allocator and handed to event().
     * Called only for those that `ways` names (LIBRARY_CAPTURE_ALLOC, LIBRARY_CAPTURE_FREE). */
    uint64_t (*capture)(void *self);
    /* After the lock was let go: the call that had this context is over.  May be NULL. */
    void (*captured)(void *self, uint64_t context);
    /* Under the device's lock, each thing that its allocator does.  NULL: nothing is kept. */
    void (*event)(void *self, struct library_device *device, const struct allocator_event *event);
    void *self;
};
int library_set_history(const struct library_history *history, unsigned ways, struct error *err);
static inline bool library_wants(enum library_way way)
{
    return atomic_load_explicit(&library_ways, memory_order_relaxed) & way;
}
/* Contexts around a call: begin gives the number (0 where nobody wants one). */
uint64_t library_context_begin(enum library_way way);
void library_context_end(uint64_t context);

/* An allocator has something to tell or not: its device's lock is held, or nobody knows it yet. */
void library_set_trace(struct library_device *device);
/* An event that is not the allocator's own, under the device's lock: history and trackers hear of it. */
void library_trace(struct library_device *device, const struct allocator_event *event);
/* A request failed: outside of every lock. */
void library_tell_oom(int device, uint64_t size, uint64_t total, uint64_t free_bytes);

/* A pluggable allocator in place of ours; refused after the first use of any (CUDAMEM_ERROR_STATE). */
struct library_foreign {
    const char *name; /* get_allocator_backend's answer */
    int (*allocate)(void *self, uint64_t size, int device, void *stream, void **pointer, struct error *err);
    int (*release)(void *self, void *pointer, struct error *err);
    void (*empty_cache)(void *self);                                    /* these may be NULL: nothing to do */
    void (*set_fraction)(void *self, double fraction, int device);
    void (*record_stream)(void *self, void *pointer, void *stream);
    void *(*base)(void *self, void *pointer, uint64_t *size);
    void *self;
};
int library_set_foreign(const struct library_foreign *foreign, struct error *err); /* the struct must stay */
const struct library_foreign *library_foreign(void);                              /* NULL: ours is the current one */
/* CUDAMEM_ERROR_UNSUPPORTED with "a pluggable allocator has no WHAT" if one is current, else 0. */
int library_native_only(const char *what, struct error *err);

/* --- debugging (debug.c) ------------------------------------------------------------------------------------------ */

/* A call gave or took this address. */
void library_debug_note(uint64_t address, bool freed);
/* A misuse of the allocator was found at this address (0: none in particular): with CUDAMEM_DEBUG=abort prints the
 * message, this call's stack and that of the block's last call, and aborts; else returns. */
void library_misused(uint64_t address, const struct error *err);

#endif
