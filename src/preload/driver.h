/*
 * The real driver's functions, found once.
 *
 * driver_use() fills the table from a loaded library; the first one wins and the table never changes afterwards, so
 * wrappers read it without a lock.  A wrapper runs only after the table was filled, and only for a function that the
 * real driver has.  Everything is looked up here, at the moment the driver is found, because looking up while recording
 * can deadlock with a thread inside dlopen.
 *
 * driver_wrapper() is the rule of replacement: an address is swapped only if it equals the real export that we wrap.
 */
#ifndef PRELOAD_DRIVER_H
#define PRELOAD_DRIVER_H

#include "device/cuda_abi.h"

#include <stdbool.h>
#include <stddef.h>

enum driver_call { /* numbers of the functions that we wrap; entries name them */
    CALL_NONE,
#define ENTRY(name) CALL_##name,
#include "preload/entries.inc"
#undef ENTRY
    CALL_COUNT
};
extern const char *const driver_call_names[CALL_COUNT]; /* [CALL_NONE] is "" */

struct driver {
#define ENTRY(name) __typeof__(name) *name;
#include "preload/entries.inc"
#undef ENTRY
    /* called, never wrapped; NULL where the driver lacks them */
    __typeof__(cuDriverGetVersion) *cuDriverGetVersion;
    __typeof__(cuCtxGetDevice) *cuCtxGetDevice;
    __typeof__(cuCtxGetCurrent) *cuCtxGetCurrent;
    __typeof__(cuDevicePrimaryCtxGetState) *cuDevicePrimaryCtxGetState;
    __typeof__(cuDeviceGetName) *cuDeviceGetName;
    __typeof__(cuDeviceGetUuid) *cuDeviceGetUuid;
    __typeof__(cuDeviceGetUuid_v2) *cuDeviceGetUuid_v2;
    __typeof__(cuDeviceTotalMem_v2) *cuDeviceTotalMem_v2;
    __typeof__(cuStreamIsCapturing) *cuStreamIsCapturing;
    __typeof__(cuDeviceGetDefaultMemPool) *cuDeviceGetDefaultMemPool;
    __typeof__(cuDeviceGetMemPool) *cuDeviceGetMemPool;
    __typeof__(cuDeviceGetGraphMemAttribute) *cuDeviceGetGraphMemAttribute;
    char path[512]; /* of the library, for diagnostics */
};
extern struct driver driver;

bool driver_ready(void);
void *driver_handle(void); /* of the real library; NULL before it was found */

/* Take the functions from the library that `handle` stands for.  False if it is no driver. */
bool driver_use(void *handle);

/* Find a driver that is loaded already, or load the one that CUDAMEM_DRIVER names.  False: there is none. */
bool driver_locate(void);

/* The number of a name among those that we wrap, CALL_NONE for any other. */
enum driver_call driver_call_number(const char *name);

/* Our wrapper of a real export, by its number or by its address; NULL if the real driver lacks it or it is none. */
void *driver_wrapper_of(enum driver_call call);
void *driver_wrapper(const void *real);

/* The real export itself. */
void *driver_real_of(enum driver_call call);

#endif
