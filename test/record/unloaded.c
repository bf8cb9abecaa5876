/* unloaded FIRST SECOND: libraries that come and go at one address, with an allocation through each of them; then a library
 * that is closed once too often. */
#include "../programs/driver.h"

#include <link.h>

static NOINLINE int call_back(void *context)
{
    *(CUdeviceptr *)context = take(MIB);
    return 0;
}

/* Where it was loaded. */
static NOINLINE unsigned long use_library(const char *path, const char *function)
{
    struct link_map *map = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*call)(int (*)(void *), void *) =
        library ? (int (*)(int (*)(void *), void *))dlsym(library, function) : NULL;
    CUdeviceptr address;
    if (!call || dlinfo(library, RTLD_DI_LINKMAP, &map))
        die(dlerror(), 0);
    unsigned long place = map->l_addr;
    call(call_back, &address);
    printf("closed: %d\n", dlclose(library));
    return place;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 97;
    driver_ready();
    unsigned long place = 0, same = 0;
    for (int i = 0; i < 6; i++) {
        unsigned long here = use_library(argv[1 + i % 2], i % 2 ? "second_call" : "first_call");
        same += here == place;
        place = here;
    }
    void *stays = dlopen("libm.so.6", RTLD_NOW | RTLD_NODELETE);
    for (int i = 0; i < 2; i++) {
        int result = dlclose(stays);
        const char *message = dlerror();
        printf("closed: %d, %s\n", result, message ? message : "no message");
    }
    dlsym(RTLD_DEFAULT, "there_is_no_such_function");
    void *first = dlopen(argv[1], RTLD_NOW);
    dlsym(first, "there_is_no_such_function");
    dlclose(first);
    const char *message = dlerror();
    printf("after a good one: %s\n", message ? message : "no message");
    printf("at the place of the last one: %lu\n", same);
    report("unloaded");
    return 0;
}
