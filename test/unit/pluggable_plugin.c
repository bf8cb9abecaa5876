/* An allocator for test_library_pluggable.c, by PyTorch's signatures: what it was told stands in one struct. */
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

#include "pluggable_plugin.h"

struct plugin_told plugin_told;

void *plugin_alloc(ptrdiff_t size, int device, void *stream)
{
    plugin_told.allocs++;
    plugin_told.size = size;
    plugin_told.device = device;
    plugin_told.stream = stream;
    return size == PLUGIN_TOO_MUCH ? NULL : malloc(size ? (size_t)size : 1);
}

void plugin_free(void *pointer, ptrdiff_t size, int device, void *stream)
{
    plugin_told.frees++;
    plugin_told.pointer = pointer;
    plugin_told.size = size;
    plugin_told.device = device;
    plugin_told.stream = stream;
    free(pointer);
}
