/* The driver by dlopen, for the programs of this folder: DRIVER(cuInit)(0) looks the function up and calls it. */
#ifndef TEST_RECORD_DRIVER_OPEN_H
#define TEST_RECORD_DRIVER_OPEN_H

#include "device/cuda_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *driver_function(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_NOW);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) {
        printf("no %s\n", name);
        exit(99);
    }
    return function;
}
#define DRIVER(name) ((__typeof__(name) *)driver_function(#name))

static inline void check(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        printf("%s: %d\n", what, (int)result);
        exit(98);
    }
}
#define CHECK(call) check(call, #call)

#endif
