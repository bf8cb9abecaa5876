/* Opens torch_user.so from its own folder, locally, and runs it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
    if (length <= 0)
        return 98;
    path[length] = 0;
    strcpy(strrchr(path, '/') + 1, "torch_user.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*use)(void);
    void *found = library ? dlsym(library, "use_torch") : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        return 97;
    }
    memcpy(&use, &found, sizeof use);
    return use();
}
