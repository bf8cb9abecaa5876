/*
 * The real driver's functions, found once.  Uses the linker and the C library.
 */
#include "preload/driver.h"

#include "preload/caching.h"
#include "preload/linker.h"
#include "preload/preload.h"
#include "preload/wrappers.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_SLOTS 512 /* of the table from addresses to numbers; a power of two, some four times the entries */

struct driver driver;

const char *const driver_call_names[CALL_COUNT] = {
    "",
#define ENTRY(name) #name,
#include "preload/entries.inc"
#undef ENTRY
};

static void *const driver_wrappers[CALL_COUNT] = {
    NULL,
#define ENTRY(name) (void *)wrap_##name,
#include "preload/entries.inc"
#undef ENTRY
};

static void *driver_reals[CALL_COUNT];
static uint16_t driver_slots[DRIVER_SLOTS];
static void *driver_library;

enum { DRIVER_NONE, DRIVER_FILLING, DRIVER_READY };
static atomic_int driver_state;

bool driver_ready(void)
{
    return atomic_load_explicit(&driver_state, memory_order_acquire) == DRIVER_READY;
}

void *driver_handle(void)
{
    return driver_ready() ? driver_library : NULL;
}

static size_t slot_of(const void *address)
{
    return (size_t)(((uintptr_t)address * 0x9e3779b97f4a7c15u) >> 32) % DRIVER_SLOTS;
}

static void index_reals(void)
{
    for (unsigned call = 1; call < CALL_COUNT; call++) {
        if (!driver_reals[call])
            continue;
        size_t slot = slot_of(driver_reals[call]);
        while (driver_slots[slot])
            slot = (slot + 1) % DRIVER_SLOTS;
        driver_slots[slot] = (uint16_t)call;
    }
}

/* Look everything up; nothing shared is touched, so that no thread waits for another inside the linker. */
static bool look_up(void *handle, struct driver *found, void *reals[CALL_COUNT])
{
    unsigned count = 0;
#define LOOK_UP(name) found->name = (__typeof__(found->name))linker_symbol(handle, #name)
#define ENTRY(name) \
    LOOK_UP(name); \
    reals[CALL_##name] = (void *)found->name; \
    count += found->name != NULL;
#include "preload/entries.inc"
#undef ENTRY
    LOOK_UP(cuDriverGetVersion);
    LOOK_UP(cuCtxGetDevice);
    LOOK_UP(cuCtxGetCurrent);
    LOOK_UP(cuDevicePrimaryCtxGetState);
    LOOK_UP(cuDeviceGetName);
    LOOK_UP(cuDeviceGetUuid);
    LOOK_UP(cuDeviceGetUuid_v2);
    LOOK_UP(cuDeviceTotalMem_v2);
    LOOK_UP(cuStreamIsCapturing);
    LOOK_UP(cuDeviceGetDefaultMemPool);
    LOOK_UP(cuDeviceGetMemPool);
    LOOK_UP(cuDeviceGetGraphMemAttribute);
#undef LOOK_UP
    return count > 0 && found->cuInit;
}

static void *find_real(void *handle, const char *name)
{
    return linker_symbol(handle, name);
}

static bool take_library(void *handle)
{
    struct driver found;
    void *reals[CALL_COUNT] = {NULL};
    const char *path = NULL;
    memset(&found, 0, sizeof(found));
    if (!look_up(handle, &found, reals) || linker_object_of((void *)found.cuInit, NULL, &path) != LINKER_DRIVER)
        return false;
    if (path) {
        snprintf(found.path, sizeof(found.path), "%s", path);
        /* it must not go away under our table, whoever closes it */
        dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
    int expected = DRIVER_NONE;
    if (atomic_compare_exchange_strong(&driver_state, &expected, DRIVER_FILLING)) {
        driver = found;
        memcpy(driver_reals, reals, sizeof(driver_reals));
        driver_library = handle;
        index_reals();
        caching_found_driver(find_real, handle);
        atomic_store_explicit(&driver_state, DRIVER_READY, memory_order_release);
        preload_debug("driver %s", found.path);
    }
    while (!driver_ready())
        sched_yield(); /* a thread copies a table, no more */
    return true;
}

bool driver_use(void *handle)
{
    if (driver_ready())
        return true;
    bool taken = take_library(handle);
    dlerror(); /* what was not found is our affair, not the program's */
    return taken;
}

bool driver_locate(void)
{
    if (driver_ready())
        return true;
    void *handle = NULL;
    const char *path = secure_getenv("CUDAMEM_DRIVER");
    if (linker_forwarder() && path && path[0] == '/')
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle && !linker_forwarder())
        handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        dlerror();
    return handle && driver_use(handle);
}

/* The names are sorted nowhere; there are few, and a program asks for each once. */
enum driver_call driver_call_number(const char *name)
{
    for (unsigned call = 1; call < CALL_COUNT; call++)
        if (strcmp(name, driver_call_names[call]) == 0)
            return (enum driver_call)call;
    return CALL_NONE;
}

void *driver_real_of(enum driver_call call)
{
    return driver_ready() ? driver_reals[call] : NULL;
}

void *driver_wrapper_of(enum driver_call call)
{
    return driver_ready() && driver_reals[call] ? driver_wrappers[call] : NULL;
}

void *driver_wrapper(const void *real)
{
    if (!real || !driver_ready())
        return NULL;
    for (size_t slot = slot_of(real); driver_slots[slot]; slot = (slot + 1) % DRIVER_SLOTS)
        if (driver_reals[driver_slots[slot]] == real)
            return driver_wrappers[driver_slots[slot]];
    return NULL;
}
