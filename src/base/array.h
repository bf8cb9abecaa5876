/*
 * Growable arrays of plain data.
 *
 *     struct frame *items; size_t count, capacity;
 *     if (array_reserve(&items, &capacity, count + 1, sizeof(*items))) -> no memory
 *
 * Growth is by half, so that big columns waste little; every multiplication is
 * checked.  Elements are moved bytewise; keep indices, not pointers.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Make room for `need` elements of `element` bytes.  `data` is the address of a pointer of any object type.
 * Returns 0 or STATUS_NO_MEMORY; on failure the array is untouched. */
int array_reserve(void *data, size_t *capacity, size_t need, size_t element);

/* A freshly grown array of this many bytes will be filled: a big one asks for huge pages, which cost a page fault for
 * 2 MiB instead of 512 of them.  Only advice; small arrays are left alone. */
void array_advise(void *data, size_t bytes);

/* a + b and a * b with overflow told. */
static inline bool add_overflows(size_t a, size_t b, size_t *sum)
{
    return __builtin_add_overflow(a, b, sum);
}

static inline bool multiply_overflows(size_t a, size_t b, size_t *product)
{
    return __builtin_mul_overflow(a, b, product);
}

#endif
