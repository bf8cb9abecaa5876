/* The caching allocator of pinned host memory (include/cudamem/host.h).  Uses src/base and the driver. */
#include "api/host.h"

#include "api/report.h"
#include "base/array.h"

#include <cudamem/host.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct host host = {.block_count = 1};

static int64_t microseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void add_time(struct host_time *time, int64_t took)
{
    time->total += took;
    time->count++;
    time->max = took > time->max ? took : time->max;
    time->min = time->min && time->min < took ? time->min : took;
}

/* The whole power of two; HOST_POWERS: there is none. */
static uint32_t power_of(size_t size)
{
    return size <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(size - 1);
}

static __thread bool fork_holds; /* not where a signal handler forks in the midst of a call */

static void before_fork(void)
{
    fork_holds = !library_thread.inside;
    if (fork_holds)
        lock_take(&host.lock);
}

static void after_fork(void)
{
    if (fork_holds)
        lock_open(&host.lock);
}

static void register_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static void enter(void)
{
    library_thread.inside = true; /* a signal handler that comes in meanwhile is refused */
    lock_take(&host.lock);
}

static void leave(void)
{
    lock_open(&host.lock);
    library_thread.inside = false;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

void host_make_free(uint32_t number)
{
    struct host_block *block = &host.blocks[number];
    block->next = host.free[block->power];
    host.free[block->power] = number;
    memory_stat_decrease(&host.active_requests, 1);
    memory_stat_decrease(&host.active_bytes, INT64_C(1) << block->power);
}

static void hand_out(uint32_t number)
{
    struct host_block *block = &host.blocks[number];
    block->is_handed_out = true;
    memory_stat_increase(&host.active_requests, 1);
    memory_stat_increase(&host.active_bytes, INT64_C(1) << block->power);
}

/* A record for a block; 0: no memory. */
static uint32_t new_record(void)
{
    uint32_t number = host.spare;
    if (number) {
        host.spare = host.blocks[number].next;
        return number;
    }
    size_t need = host.block_count + 1;
    if (need >= UINT32_MAX || array_reserve(&host.blocks, &host.block_capacity, need, sizeof(*host.blocks)))
        return 0;
    host.blocks[0] = host.blocks[host.block_count] = (struct host_block){.pointer = NULL};
    return (uint32_t)host.block_count++;
}

static void give_record(uint32_t number)
{
    free(host.blocks[number].uses);
    host.blocks[number] = (struct host_block){.next = host.spare};
    host.spare = number;
}

static uint32_t find(const void *pointer)
{
    uint32_t number = table_get(&host.index, (uint64_t)(uintptr_t)pointer, 0);
    return number && host.blocks[number].is_handed_out ? number : 0;
}

/* --- the driver ---------------------------------------------------------------------------------------------------- */

/* Without the lock: the driver takes its time. */
static int ask_driver(struct library_device *device, uint32_t power, void **pointer, int64_t *took, struct error *err)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    int status = library_push_context(device, err);
    if (status)
        return status;
    host.call->cuThreadExchangeStreamCaptureMode(&mode);
    int64_t start = microseconds();
    CUresult result = host.call->cuMemHostAlloc(pointer, (size_t)1 << power, CU_MEMHOSTALLOC_PORTABLE);
    *took = microseconds() - start;
    host.call->cuThreadExchangeStreamCaptureMode(&mode);
    library_pop_context();
    return library_driver_status((int)result, "asking for pinned host memory", err);
}

static void give_driver(struct library_device *device, void *pointer)
{
    struct error ignored;
    if (library_push_context(device, &ignored))
        return;
    host.call->cuMemFreeHost(pointer);
    library_pop_context();
}

/* A block that the driver made is ours now; 0: no memory. */
static uint32_t take_over(void *pointer, uint32_t power, int64_t took)
{
    uint32_t number = new_record();
    if (number && table_set(&host.index, (uint64_t)(uintptr_t)pointer, number)) {
        give_record(number);
        number = 0;
    }
    if (!number)
        return 0;
    host.blocks[number].pointer = pointer;
    host.blocks[number].power = power;
    memory_stat_increase(&host.allocations, 1);
    memory_stat_increase(&host.allocated_bytes, INT64_C(1) << power);
    add_time(&host.alloc_time, took);
    hand_out(number);
    return number;
}

static int allocate_new(struct library_device *device, uint32_t power, void **pointer, struct error *err)
{
    void *memory;
    int64_t took;
    int status = ask_driver(device, power, &memory, &took, err);
    if (status)
        return status;
    enter();
    uint32_t number = take_over(memory, power, took);
    leave();
    if (!number) {
        give_driver(device, memory);
        return error_no_memory(err);
    }
    *pointer = memory;
    return CUDAMEM_OK;
}

/* The device whose context the calls are made in; the first one makes it. */
static int begin(struct library_device **device, struct error *err)
{
    int status = library_check_outside(err);
    if (!status)
        status = library_device(-1, device, err);
    if (status)
        return status;
    enter();
    if (!host.call)
        host.call = library_driver(err);
    leave();
    return CUDAMEM_OK;
}

static bool is_begun(void)
{
    enter();
    bool begun = host.call != NULL;
    leave();
    return begun;
}

static int allocate(size_t size, void **pointer, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct library_device *device;
    uint32_t power = power_of(size);
    pthread_once(&once, register_forks);
    int status = begin(&device, err);
    if (status)
        return status;
    if (power > 62)
        return error_set(err, CUDAMEM_ERROR_OUT_OF_MEMORY, "%zu bytes of pinned host memory are more than there can be", size);
    enter();
    host_process_events();
    uint32_t number = host.free[power];
    if (number) {
        host.free[power] = host.blocks[number].next;
        hand_out(number);
        *pointer = host.blocks[number].pointer;
    }
    leave();
    return number ? CUDAMEM_OK : allocate_new(device, power, pointer, err);
}

EXPORT int cudamem_host_alloc(size_t size, void **pointer, cudamem_error *error)
{
    struct error err = {0};
    if (!pointer)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "no place for the pointer was given"));
    *pointer = NULL;
    int status = size ? allocate(size, pointer, &err) : CUDAMEM_OK;
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* --- back again ------------------------------------------------------------------------------------------------------ */

static int not_ours(const void *pointer, const char *what, struct error *err)
{
    return error_set(err, CUDAMEM_ERROR_INVALID, "%s: %p was not handed out by cudamem_host_alloc(), or was freed before",
                     what, pointer);
}

static int release(void *pointer, struct error *err)
{
    int status = library_check_outside(err);
    if (status)
        return status;
    enter();
    uint32_t number = find(pointer);
    if (number) {
        host.blocks[number].is_handed_out = false;
        if (host.blocks[number].use_count)
            host_record_events(number);
        else
            host_make_free(number);
    }
    leave();
    return number ? CUDAMEM_OK : not_ours(pointer, "cudamem_host_free", err);
}

EXPORT int cudamem_host_free(void *pointer, cudamem_error *error)
{
    struct error err = {0};
    int status = pointer ? release(pointer, &err) : CUDAMEM_OK;
    if (status == CUDAMEM_ERROR_INVALID)
        library_misused((uint64_t)(uintptr_t)pointer, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* Streams are told apart by handle and context: each context has a default stream of its own. */
static int add_use(struct host_block *block, CUstream stream, CUcontext context, struct error *err)
{
    for (size_t i = 0; i < block->use_count; i++)
        if (block->uses[i].stream == stream && block->uses[i].context == context)
            return CUDAMEM_OK;
    if (array_reserve(&block->uses, &block->use_capacity, block->use_count + 1, sizeof(*block->uses)))
        return error_no_memory(err);
    block->uses[block->use_count++] = (struct host_use){stream, context};
    return CUDAMEM_OK;
}

static int record_stream(void *pointer, CUstream stream, struct error *err)
{
    struct library_device *device;
    CUcontext context;
    int status = begin(&device, err);
    if (status)
        return status;
    context = device->context;
    if (stream && host.call->cuStreamGetCtx(stream, &context))
        return error_set(err, CUDAMEM_ERROR_INVALID, "cudamem_host_record_stream: %p is no stream", (void *)stream);
    enter();
    uint32_t number = find(pointer);
    if (number)
        status = add_use(&host.blocks[number], stream, context, err);
    leave();
    return number ? status : not_ours(pointer, "cudamem_host_record_stream", err);
}

EXPORT int cudamem_host_record_stream(void *pointer, void *stream, cudamem_error *error)
{
    struct error err = {0};
    int status = record_stream(pointer, stream, &err);
    if (status == CUDAMEM_ERROR_INVALID)
        library_misused((uint64_t)(uintptr_t)pointer, &err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* --- the cache ------------------------------------------------------------------------------------------------------- */

/* Under the lock.  What the driver refuses to take is the driver's. */
static CUresult give_back(uint32_t number)
{
    struct host_block *block = &host.blocks[number];
    int64_t start = microseconds();
    CUresult result = host.call->cuMemFreeHost(block->pointer);
    add_time(&host.free_time, microseconds() - start);
    memory_stat_decrease(&host.allocations, 1);
    memory_stat_decrease(&host.allocated_bytes, INT64_C(1) << block->power);
    table_remove(&host.index, (uint64_t)(uintptr_t)block->pointer);
    give_record(number);
    return result;
}

static int empty(struct error *err)
{
    struct library_device *device;
    CUresult result = CUDA_SUCCESS;
    int status = begin(&device, err);
    if (!status)
        status = library_push_context(device, err);
    if (status)
        return status;
    enter();
    host_process_events();
    for (uint32_t power = 0; power < HOST_POWERS; power++) {
        while (host.free[power]) {
            uint32_t number = host.free[power];
            host.free[power] = host.blocks[number].next;
            CUresult one = give_back(number);
            result = result ? result : one;
        }
    }
    leave();
    library_pop_context();
    return library_driver_status((int)result, "giving pinned host memory back", err);
}

EXPORT int cudamem_host_empty_cache(cudamem_error *error)
{
    struct error err = {0};
    int status = library_check_outside(&err);
    if (!status && is_begun()) /* else nothing was ever asked for */
        status = empty(&err);
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}
