/* What the test's allocator was told last. */
#ifndef TEST_PLUGGABLE_PLUGIN_H
#define TEST_PLUGGABLE_PLUGIN_H

#include <stddef.h>

#define PLUGIN_TOO_MUCH 123456

struct plugin_told {
    int allocs, frees;
    ptrdiff_t size;
    int device;
    void *stream, *pointer;
};

extern struct plugin_told plugin_told;
void *plugin_alloc(ptrdiff_t size, int device, void *stream);
void plugin_free(void *pointer, ptrdiff_t size, int device, void *stream);

#endif
