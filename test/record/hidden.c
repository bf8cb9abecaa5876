/*
 * hidden PATH: reaches the driver in a way that no interposing sees: the C library's own dlsym on a library opened by its
 * path.
 */
#include "device/cuda_abi.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *c_library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *(*real_dlsym)(void *, const char *) = NULL;
    if (c_library)
        real_dlsym = (void *(*)(void *, const char *))dlvsym(c_library, "dlsym", "GLIBC_2.34");
    if (c_library && !real_dlsym)
        real_dlsym = (void *(*)(void *, const char *))dlvsym(c_library, "dlsym", "GLIBC_2.2.5");
    if (!library || !real_dlsym) {
        printf("%s\n", dlerror());
        return 1;
    }
    __typeof__(cuInit) *init = (__typeof__(cuInit) *)real_dlsym(library, "cuInit");
    printf("%d\n", init ? (int)init(0) : -1);
    return 0;
}
