/*
 * Our wrapper of each driver function in wrapped.txt: the same prototype under a name of our own.  Programs get them by
 * dlsym, cuGetProcAddress, or through an exported stub; inside they are never reached through the public name.
 */
#ifndef PRELOAD_WRAPPERS_H
#define PRELOAD_WRAPPERS_H

#include "device/cuda_abi.h"

#define ENTRY(name) extern __typeof__(name) wrap_##name;
#include "preload/entries.inc"
#undef ENTRY

#endif
