/*
 * names LIBRARY: what dlsym answers for names that a recorder wraps and for many others, by handle and by scope: one
 * line a question, the object and the symbol that the answer lies in.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const wrapped[] = {"cuInit", "cuMemAlloc_v2", "cuMemFree_v2", "cuGetProcAddress_v2", "cuMemAllocAsync"};
static const char *const others[] = {"cudnnCreate", "curl_easy_init", "cu", "", "cuNothing", "cuDeviceGetCount",
                                     "cuMemsetD8_v2", "malloc", "printf", "dlsym_", "cuInit_", "cuMemAlloc_v3", "main"};

static void ask(const char *where, void *handle, const char *name, const char *kind)
{
    Dl_info info = {0};
    (void)dlerror();
    void *answer = dlsym(handle, name);
    const char *error = dlerror();
    if (answer && dladdr(answer, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        printf("%s:%s %s %s %s\n", where, name, kind, slash ? slash + 1 : info.dli_fname,
               *kind == 'o' && info.dli_sname ? info.dli_sname : "");
    } else {
        printf("%s:%s %s nothing %s\n", where, name, kind, error ? error : "and no error");
    }
    if (answer && error)
        printf("an answer and an error\n");
}

int main(int argc, char **argv)
{
    void *library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    void *c_library = dlopen("libc.so.6", RTLD_NOW), *mathematics = dlopen("libm.so.6", RTLD_NOW);
    for (size_t i = 0; i < sizeof(wrapped) / sizeof(wrapped[0]); i++) {
        ask("handle", library, wrapped[i], "wrapped");
        ask("libc", c_library, wrapped[i], "other");
        ask("libm", mathematics, wrapped[i], "other");
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        ask("handle", library, others[i], "other");
        ask("libc", c_library, others[i], "other");
        if (others[i][0] != 'c' || others[i][1] != 'u' || others[i][2] < 'A' || others[i][2] > 'Z') {
            ask("default", RTLD_DEFAULT, others[i], "other");
            ask("next", RTLD_NEXT, others[i], "other");
        }
    }
    return 0;
}
