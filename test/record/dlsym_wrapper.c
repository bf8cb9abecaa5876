/* Somebody else's preloaded library: a dlsym of its own, in C, that calls on, and says at the end that it was asked. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

typedef void *dlsym_function(void *, const char *);

static atomic_uint asked;

extern void *dlsym(void *restrict handle, const char *restrict name);

__attribute__((visibility("default"))) void *dlsym(void *restrict handle, const char *restrict name)
{
    static _Atomic(dlsym_function *) next;
    dlsym_function *call = atomic_load(&next);
    if (!call) {
        call = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (!call)
            call = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        /* whoever interposes behind this library is asked, not the C library */
        dlsym_function *behind = (dlsym_function *)call(RTLD_NEXT, "dlsym");
        if (behind)
            call = behind;
        atomic_store(&next, call);
    }
    atomic_fetch_add(&asked, 1);
    return call(handle, name);
}

__attribute__((destructor)) static void say(void)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "dlsym_wrapper: %u\n", atomic_load(&asked));
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}
