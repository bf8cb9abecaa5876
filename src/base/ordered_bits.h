/*
 * A set of numbers below a fixed bound that knows the nearest member at or below, and at or above, a number: words of
 * bits, and over every 64 words a word that says which of them are not empty.  Each call looks at a few words.
 * Not thread safe.
 */
#ifndef BASE_ORDERED_BITS_H
#define BASE_ORDERED_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDERED_BITS_LEVELS 6 /* 64^6 numbers */
#define ORDERED_BITS_NONE SIZE_MAX

struct ordered_bits {
    uint64_t *words; /* all levels, the lowest first */
    size_t start[ORDERED_BITS_LEVELS];
    int levels;
    size_t bound;
};

int ordered_bits_init(struct ordered_bits *bits, size_t bound); /* empty; 0 or STATUS_NO_MEMORY */
void ordered_bits_free(struct ordered_bits *bits);
void ordered_bits_add(struct ordered_bits *bits, size_t number);
void ordered_bits_remove(struct ordered_bits *bits, size_t number);
bool ordered_bits_has(const struct ordered_bits *bits, size_t number);

/* The greatest member <= number, the least >= number; ORDERED_BITS_NONE if there is none. */
size_t ordered_bits_at_or_below(const struct ordered_bits *bits, size_t number);
size_t ordered_bits_at_or_above(const struct ordered_bits *bits, size_t number);

#endif
