/* Growable arrays; uses only the C library and madvise. */
#include "base/array.h"

#include "base/error.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ADVISE_FROM = 8 * 1024 * 1024 };

void array_advise(void *data, size_t bytes)
{
    if (bytes < ADVISE_FROM)
        return;
    /* The whole mapping, as malloc made it: one half of it advised would make two of it, and growing a copy. */
    uintptr_t start = ((uintptr_t)data - 1) & ~(uintptr_t)(PAGE - 1);
    uintptr_t end = ((uintptr_t)data + malloc_usable_size(data) + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    madvise((char *)data - ((uintptr_t)data - start), end - start, MADV_HUGEPAGE);
}

int array_reserve(void *data, size_t *capacity, size_t need, size_t element)
{
    if (need <= *capacity)
        return STATUS_OK;
    size_t grown = *capacity + *capacity / 2;
    size_t wanted = grown > need ? grown : need;
    if (wanted < 16)
        wanted = 16;
    size_t bytes;
    if (multiply_overflows(wanted, element, &bytes))
        return STATUS_NO_MEMORY;
    void *old, *moved;
    memcpy(&old, data, sizeof(old));
    moved = realloc(old, bytes);
    if (!moved)
        return STATUS_NO_MEMORY;
    array_advise(moved, bytes);
    memcpy(data, &moved, sizeof(moved));
    *capacity = wanted;
    return STATUS_OK;
}
