/* C++ names for people.  Uses libstdc++ through dlopen. */
#include "symbol/demangle.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef char *demangler(const char *name, char *buffer, size_t *length, int *status);

static demangler *find_demangler(void)
{
    static demangler *found;
    static bool looked;
    if (!looked) {
        void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL); /* stays for the life of the process */
        looked = true;
        if (library)
            found = (demangler *)dlsym(library, "__cxa_demangle");
    }
    return found;
}

const char *demangle(const char *name)
{
    static char *kept;
    int status = 0;
    if (strncmp(name, "_Z", 2) != 0 || strnlen(name, DEMANGLE_LIMIT + 1) > DEMANGLE_LIMIT || !find_demangler())
        return name;
    char *text = find_demangler()(name, NULL, NULL, &status);
    if (status || !text)
        return name;
    free(kept);
    return kept = text;
}
