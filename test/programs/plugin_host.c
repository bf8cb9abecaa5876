/* Loads plugin_runtime.so from its own folder. */
#include <libgen.h>

#include "driver.h"

int main(int argc, char **argv)
{
    char self[4096], path[4200];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return 97;
    self[length] = '\0';
    snprintf(path, sizeof path, "%s/plugin_runtime.so", dirname(self));
    int deep = argc > 1 && strcmp(argv[1], "deep") == 0 ? RTLD_DEEPBIND : 0;
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | deep);
    int (*run)(void) = NULL;
    void *address = plugin ? dlsym(plugin, "plugin_run") : NULL;
    if (!address) {
        fprintf(stderr, "%s\n", dlerror());
        return 98;
    }
    memcpy(&run, &address, sizeof address);
    return run();
}
