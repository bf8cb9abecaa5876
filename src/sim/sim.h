/*
 * The simulated device: GPUs that exist only as numbers, for tests, demos and
 * machines without one.  What a driver does about memory, streams and events
 * is done here; src/sim/driver_*.c puts the public driver API over it, and the
 * allocator's tests use it directly.
 *
 * Addresses are where device/placement.h says the driver puts segments (small
 * requests, up to 1 MiB, share 2 MiB slabs); contents are real, kept in host
 * memory that is taken when first touched.  Nothing happens by itself: work on
 * a stream is done at once, or, with manual set, when sim_complete or somebody
 * who waits says so.
 *
 * Ownership: sim_free frees everything made from a sim.  Threads: every call
 * locks for itself; callbacks run without the lock.  Cost: microseconds.
 * Results are the driver's, as the H200's driver 580 gives them.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "device/cuda_types.h"
#include "device/sim_devices.h"

struct sim;
struct sim_stream;
struct sim_event;
struct sim_pool;

struct sim_config {
    unsigned devices;
    uint64_t bytes[SIM_DEVICES_MAX];
    uint64_t context_bytes; /* what a context takes for itself */
    bool manual;            /* streams stand still until told */
    bool fork;              /* a forked child may go on using the device (no real driver allows it) */
};

/* What an address belongs to. */
enum sim_kind { SIM_PLAIN, SIM_PITCHED, SIM_ARRAY, SIM_MANAGED, SIM_HOST, SIM_REGISTERED, SIM_ASYNC, SIM_MAPPED,
    SIM_IMPORTED, SIM_MODULE };

struct sim_range {
    uint64_t address, bytes; /* as asked for */
    enum sim_kind kind;
    unsigned device;
    void *owner;       /* the caller's: a context, a pool */
    uint64_t id;       /* never used twice */
    uint64_t handle;   /* SIM_MAPPED: of the physical memory */
    unsigned flags;    /* the caller's */
    bool access;       /* SIM_MAPPED: sim_allow was called */
};

/* The list that device/sim_devices.h describes; NULL: one of 16 GiB.  Everything else in config is left alone. */
int sim_config_devices(struct sim_config *config, const char *text, struct error *err);
struct sim *sim_new(const struct sim_config *config);
void sim_free(struct sim *sim);
const struct sim_config *sim_settings(const struct sim *sim);
void sim_hold(struct sim *sim, bool hold); /* around a fork: take the lock, let it go */

/*
 * Faults.  "NAME:N=CODE,...": the N-th call of NAME from now on ("N+": that and all later ones) gives CODE: a number,
 * "oom", or "lost" (the device is lost: that call and everything after it gives CUDA_ERROR_UNKNOWN).  sim_enter counts
 * a call and says what it shall give; the calls of this header do that themselves under the names in their comments.
 */
int sim_faults(struct sim *sim, const char *text, struct error *err);
CUresult sim_enter(struct sim *sim, const char *name);
void sim_lose(struct sim *sim, unsigned device);

/* Memory ("get", "release").  kind: any of device memory; owner and flags are kept for the caller. */
CUresult sim_get(struct sim *sim, unsigned device, uint64_t bytes, enum sim_kind kind, void *owner, uint64_t *address);
CUresult sim_release(struct sim *sim, uint64_t address);
CUresult sim_info(struct sim *sim, unsigned device, uint64_t *available, uint64_t *total);
/* Take or give back device memory that has no address of its own (contexts). */
CUresult sim_charge(struct sim *sim, unsigned device, uint64_t bytes);
void sim_discharge(struct sim *sim, unsigned device, uint64_t bytes);
bool sim_find(struct sim *sim, uint64_t address, struct sim_range *range);
/* Host memory known to the device: made here (mmap), or the caller's (SIM_REGISTERED, nothing is freed). */
CUresult sim_host_get(struct sim *sim, uint64_t bytes, enum sim_kind kind, unsigned device, void *owner,
    unsigned flags, uint64_t *address);
CUresult sim_host_add(struct sim *sim, uint64_t address, uint64_t bytes, enum sim_kind kind, unsigned device,
    void *owner, unsigned flags);
/* Release everything that belongs to owner (a context that ends). */
void sim_release_owner(struct sim *sim, const void *owner);

/* Contents: copies and fills; an address that is nobody's is the host's.  pattern: of 1, 2 or 4 bytes. */
CUresult sim_copy(struct sim *sim, uint64_t target, uint64_t source, uint64_t bytes);
CUresult sim_fill(struct sim *sim, uint64_t target, uint32_t pattern, unsigned size, uint64_t count);

/* Virtual memory ("reserve", "create", "map", "unmap"): sizes are multiples of 2 MiB. */
CUresult sim_reserve(struct sim *sim, uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address);
CUresult sim_unreserve(struct sim *sim, uint64_t address, uint64_t bytes);
CUresult sim_create(struct sim *sim, unsigned device, uint64_t bytes, uint64_t *handle);
CUresult sim_retain(struct sim *sim, uint64_t handle);
CUresult sim_drop(struct sim *sim, uint64_t handle);
CUresult sim_handle(struct sim *sim, uint64_t handle, unsigned *device, uint64_t *bytes);
CUresult sim_map(struct sim *sim, uint64_t address, uint64_t bytes, uint64_t offset, uint64_t handle);
CUresult sim_unmap(struct sim *sim, uint64_t address, uint64_t bytes);
CUresult sim_allow(struct sim *sim, uint64_t address, uint64_t bytes, bool access);

/* Streams and events.  A stream that goes finishes its work first. */
struct sim_stream *sim_stream_new(struct sim *sim, unsigned device);
void sim_stream_free(struct sim_stream *stream);
CUresult sim_stream_call(struct sim_stream *stream, void (*call)(void *), void *data);
bool sim_stream_done(struct sim_stream *stream);
void sim_stream_finish(struct sim_stream *stream);
struct sim_event *sim_event_new(struct sim *sim);
void sim_event_free(struct sim_event *event);
CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream);
CUresult sim_stream_wait(struct sim_stream *stream, struct sim_event *event);
bool sim_event_done(struct sim_event *event);
void sim_event_finish(struct sim_event *event);
double sim_event_time(struct sim_event *event); /* of completion, seconds; negative: never */
/* Let up to count items of work be done, on one stream or (NULL) on each; returns how many were. */
uint64_t sim_complete(struct sim *sim, struct sim_stream *stream, uint64_t count);
void sim_set_manual(struct sim *sim, bool manual);

/* Pools of memory in stream order. */
struct sim_pool *sim_pool_new(struct sim *sim, unsigned device, uint64_t maximum);
void sim_pool_free(struct sim_pool *pool);
CUresult sim_pool_get(struct sim_pool *pool, uint64_t bytes, void *owner, uint64_t *address);
CUresult sim_pool_put(struct sim *sim, uint64_t address);
void sim_pool_trim(struct sim_pool *pool, uint64_t keep);
struct sim_pool_numbers {
    uint64_t threshold, reserved, reserved_high, used, used_high;
};
void sim_pool_numbers(struct sim_pool *pool, struct sim_pool_numbers *numbers);
void sim_pool_set(struct sim_pool *pool, const uint64_t *threshold, bool reset_reserved_high, bool reset_used_high);
unsigned sim_pool_device(const struct sim_pool *pool);
/* What a synchronisation does to every pool of a device: give back what is above the threshold. */
void sim_pool_settle(struct sim *sim, unsigned device);

#endif
