/*
 * Modules and libraries of code: nobody says what they take, so the device's free memory is asked before and after a
 * call that may load some (measure.h): loading, looking up what is loaded lazily, and the first launch of each kernel.
 */
#ifndef PRELOAD_MODULE_H
#define PRELOAD_MODULE_H

#include "preload/hook.h"
#include "preload/measure.h"

/* Around such a call; what grew belongs to the module or library that `handle` is, or is a part of. */
void module_begin(struct hook *hook, struct measure *before, enum driver_call call, const void *caller);
CUresult module_grown(struct hook *hook, const struct measure *before, CUresult result, const void *handle);

/* Kernels that were launched: one that is new is noted.  Without a lock; when there is no room, all count as launched. */
bool module_is_launched(const void *function);
bool module_launches(const void *function); /* noted just now */

void module_after_fork(void);

#endif
