/* One program a way of finding the driver; which one, the build says in WAY. */
#include "three.h"

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
#if WAY == 1
    driver_open("libcuda.so.1", 0, BY_DLSYM);
    return three("driver_dlsym");
#elif WAY == 2
    driver_open("libcuda.so.1", 0, BY_GETPROC);
    return three("driver_getproc");
#elif WAY == 3
    driver_open("libcuda.so.1", 0, BY_GETPROC_V1);
    return three("driver_getproc_v1");
#elif WAY == 4
    driver_open("libcuda.so.1", RTLD_DEEPBIND, BY_DLSYM);
    return three("driver_deepbind");
#elif WAY == 5
    driver_open(argc > 1 ? argv[1] : "libcuda.so", 0, BY_DLSYM);
    return three("driver_path");
#endif
}
