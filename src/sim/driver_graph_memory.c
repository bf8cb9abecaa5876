/*
 * The simulated driver: memory of graphs.  May use: the simulated device.
 *
 * It has its address from the moment its node is made; what is behind the
 * address comes with the launches and stays reserved, for other graphs too,
 * until it is trimmed, as on a real driver.
 */
#include <stdlib.h>

#include "sim/driver.h"

#define GRAPH_PAGE (2u << 20)

/* Addresses that graphs own. */
struct owned {
    uint64_t address, bytes, pages;
    unsigned device;
    bool backed;
    uint64_t handle; /* of the memory behind it */
    struct owned *next;
};
static struct owned *all_owned; /* under driver_lock */

/* Memory that is reserved and behind no address. */
struct spare {
    uint64_t handle, pages;
    unsigned device;
    struct spare *next;
};
static struct spare *all_spare; /* under driver_lock */

static struct owned *owned_at(uint64_t address)
{
    for (struct owned *o = all_owned; o; o = o->next)
        if (o->address == address)
            return o;
    return NULL;
}

/* All of these: the lock is held. */
static void trim(unsigned device)
{
    for (struct spare **at = &all_spare; *at;) {
        struct spare *spare = *at;
        if (spare->device != device) {
            at = &spare->next;
            continue;
        }
        *at = spare->next;
        sim_drop(driver.sim, spare->handle);
        driver.graph_reserved[device] -= spare->pages;
        free(spare);
    }
}

static CUresult make(struct owned *o)
{
    CUresult result = sim_create(driver.sim, o->device, o->pages, &o->handle);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        trim(o->device);
        result = sim_create(driver.sim, o->device, o->pages, &o->handle);
    }
    if (result)
        return result;
    driver.graph_reserved[o->device] += o->pages;
    if (driver.graph_reserved[o->device] > driver.graph_reserved_high[o->device])
        driver.graph_reserved_high[o->device] = driver.graph_reserved[o->device];
    return CUDA_SUCCESS;
}

static CUresult reserve(struct owned *o)
{
    for (struct spare **at = &all_spare; *at; at = &(*at)->next) {
        struct spare *spare = *at;
        if (spare->device != o->device || spare->pages != o->pages)
            continue;
        o->handle = spare->handle;
        *at = spare->next;
        free(spare);
        return CUDA_SUCCESS;
    }
    return make(o);
}

static void give_back(const struct owned *o)
{
    struct spare *spare = malloc(sizeof *spare);
    if (spare) {
        *spare = (struct spare){o->handle, o->pages, o->device, all_spare};
        all_spare = spare;
    } else {
        sim_drop(driver.sim, o->handle);
        driver.graph_reserved[o->device] -= o->pages;
    }
}

static CUresult back(struct owned *o)
{
    if (o->backed)
        return CUDA_SUCCESS;
    CUresult result = reserve(o);
    if (result)
        return result;
    result = sim_map(driver.sim, o->address, o->pages, 0, o->handle);
    if (!result)
        result = sim_allow(driver.sim, o->address, o->pages, true);
    if (result) {
        give_back(o);
        return result;
    }
    o->backed = true;
    driver.graph_used[o->device] += o->pages;
    if (driver.graph_used[o->device] > driver.graph_used_high[o->device])
        driver.graph_used_high[o->device] = driver.graph_used[o->device];
    return CUDA_SUCCESS;
}

static CUresult unback(struct owned *o)
{
    if (!o->backed)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_unmap(driver.sim, o->address, o->pages);
    if (!result) {
        o->backed = false;
        driver.graph_used[o->device] -= o->pages;
        give_back(o);
    }
    return result;
}

CUresult driver_owned_new(size_t bytes, unsigned device, uint64_t *address)
{
    struct owned *o = calloc(1, sizeof *o);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->bytes = bytes;
    o->pages = (bytes + GRAPH_PAGE - 1) / GRAPH_PAGE * GRAPH_PAGE;
    o->device = device;
    CUresult result = sim_reserve(driver.sim, o->pages, 0, 0, &o->address);
    if (result) {
        free(o);
        return result;
    }
    *address = o->address;
    driver_lock();
    o->next = all_owned;
    all_owned = o;
    driver_unlock();
    return CUDA_SUCCESS;
}

/* One that no node came to have. */
void driver_owned_drop(uint64_t address)
{
    struct owned *o = NULL;
    driver_lock();
    for (struct owned **at = &all_owned; *at; at = &(*at)->next)
        if ((*at)->address == address) {
            o = *at;
            *at = o->next;
            break;
        }
    driver_unlock();
    if (o)
        sim_unreserve(driver.sim, o->address, o->pages);
    free(o);
}

bool driver_owned_known(uint64_t address)
{
    driver_lock();
    bool known = owned_at(address) != NULL;
    driver_unlock();
    return known;
}

CUresult driver_owned_back(uint64_t address, bool wanted)
{
    driver_lock();
    struct owned *o = owned_at(address);
    CUresult result = !o ? CUDA_ERROR_INVALID_VALUE : wanted ? back(o) : unback(o);
    driver_unlock();
    return result;
}

bool driver_graph_release(CUdeviceptr address, CUresult *result)
{
    driver_lock();
    struct owned *o = all_owned ? owned_at(address) : NULL;
    if (o)
        *result = unback(o);
    driver_unlock();
    return o != NULL;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    ENTER(cuDeviceGraphMemTrim, NEED_INIT);
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    trim((unsigned)device);
    driver_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    ENTER(cuDeviceGetGraphMemAttribute, NEED_INIT);
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t *numbers[] = {
        [CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT] = driver.graph_used,
        [CU_GRAPH_MEM_ATTR_USED_MEM_HIGH] = driver.graph_used_high,
        [CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT] = driver.graph_reserved,
        [CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] = driver.graph_reserved_high,
    };
    driver_lock();
    *(cuuint64_t *)value = numbers[attribute][device];
    driver_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    ENTER(cuDeviceSetGraphMemAttribute, NEED_INIT);
    if (!driver_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(cuuint64_t *)value != 0 || (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
                                                   attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        driver.graph_used_high[device] = driver.graph_used[device];
    else
        driver.graph_reserved_high[device] = driver.graph_reserved[device];
    driver_unlock();
    return CUDA_SUCCESS;
}
