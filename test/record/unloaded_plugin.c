/* A library that calls back, with its own name and its own room on the stack; see unloaded.c and stress.c.  With MAKES it
 * also takes and gives device memory when it is loaded and when it goes, by functions that it looks up itself. */
#include <dlfcn.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default"), noinline))

EXPORTED int FUNCTION(int (*back)(void *), void *context);

int FUNCTION(int (*back)(void *), void *context)
{
    volatile char room[ROOM];
    room[0] = 1;
    int result = back(context);
    return result + room[0] - 1;
}

#ifdef MAKES
static unsigned long long memory;

__attribute__((constructor)) static void plugin_begins(void)
{
    int (*take)(unsigned long long *, size_t) = (int (*)(unsigned long long *, size_t))dlsym(RTLD_DEFAULT, "plugin_take");
    if (take)
        take(&memory, 4096);
}

__attribute__((destructor)) static void plugin_ends(void)
{
    int (*give)(unsigned long long) = (int (*)(unsigned long long))dlsym(RTLD_DEFAULT, "plugin_give");
    if (give && memory)
        give(memory);
}
#endif
