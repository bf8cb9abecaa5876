/* Memory that goes past the caching allocator.  Uses src/base and src/device. */
#include "api/uncached.h"

#include "base/table.h"

#include <inttypes.h>
#include <pthread.h>

static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct table blocks; /* address -> device */
static atomic_size_t block_count;

int uncached_alloc(struct library_device *device, uint64_t size, int64_t stream, uint64_t *address, struct error *err)
{
    int status = library_enter(device, err);
    if (status)
        return status;
    status = library_know_stream(device, stream, err);
    library_leave(device);
    if (status)
        return status;
    int result = device->under.segment_get(device->under.self, size, stream, address);
    if (result)
        return library_driver_status(result, "allocating without the cache", err);
    pthread_mutex_lock(&blocks_lock);
    status = table_set(&blocks, *address, (uint32_t)device->ordinal);
    atomic_store(&block_count, blocks.count);
    pthread_mutex_unlock(&blocks_lock);
    if (status)
        device->under.segment_release(device->under.self, *address, size);
    return status ? error_no_memory(err) : CUDAMEM_OK;
}

bool uncached_owns(uint64_t address)
{
    if (!atomic_load(&block_count))
        return false;
    pthread_mutex_lock(&blocks_lock);
    bool owns = table_has(&blocks, address);
    pthread_mutex_unlock(&blocks_lock);
    return owns;
}

int uncached_free(uint64_t address, struct error *err)
{
    pthread_mutex_lock(&blocks_lock);
    uint32_t ordinal = table_get(&blocks, address, LIBRARY_DEVICES);
    table_remove(&blocks, address);
    atomic_store(&block_count, blocks.count);
    pthread_mutex_unlock(&blocks_lock);
    if (ordinal == LIBRARY_DEVICES)
        return error_set(err, CUDAMEM_ERROR_INVALID, "%#" PRIx64 " is not a block of this allocator", address);
    struct library_device *device = &library_devices[ordinal];
    int status = library_push_context(device, err);
    if (status)
        return status;
    int result = (int)library_driver(NULL)->cuMemFree_v2(address);
    library_pop_context();
    return library_driver_status(result, "freeing without the cache", err);
}
