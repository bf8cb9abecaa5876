/* A set of bounded numbers with neighbours.  Uses the C library only. */
#include "base/ordered_bits.h"

#include "base/error.h"

#include <stdlib.h>

int ordered_bits_init(struct ordered_bits *bits, size_t bound)
{
    size_t total = 0, words = bound;
    *bits = (struct ordered_bits){.bound = bound};
    do {
        words = (words + 63) / 64;
        bits->start[bits->levels++] = total;
        total += words;
    } while (words > 1 && bits->levels < ORDERED_BITS_LEVELS);
    bits->words = calloc(total + 1, sizeof(*bits->words));
    return bits->words ? STATUS_OK : STATUS_NO_MEMORY;
}

void ordered_bits_free(struct ordered_bits *bits)
{
    free(bits->words);
    *bits = (struct ordered_bits){0};
}

bool ordered_bits_has(const struct ordered_bits *bits, size_t number)
{
    return number < bits->bound && (bits->words[number / 64] >> number % 64 & 1);
}

void ordered_bits_add(struct ordered_bits *bits, size_t number)
{
    for (int level = 0; level < bits->levels; level++) {
        bits->words[bits->start[level] + number / 64] |= UINT64_C(1) << number % 64;
        number /= 64;
    }
}

void ordered_bits_remove(struct ordered_bits *bits, size_t number)
{
    for (int level = 0; level < bits->levels; level++) {
        uint64_t *word = &bits->words[bits->start[level] + number / 64];
        *word &= ~(UINT64_C(1) << number % 64);
        if (*word)
            return;
        number /= 64;
    }
}

size_t ordered_bits_at_or_below(const struct ordered_bits *bits, size_t number)
{
    if (!bits->bound)
        return ORDERED_BITS_NONE;
    if (number >= bits->bound)
        number = bits->bound - 1;
    for (int level = 0; level < bits->levels; level++) {
        uint64_t word = bits->words[bits->start[level] + number / 64] & (UINT64_MAX >> (63 - number % 64));
        if (word) {
            number = number / 64 * 64 + 63 - (size_t)__builtin_clzll(word);
            while (level-- > 0)
                number = number * 64 + 63 - (size_t)__builtin_clzll(bits->words[bits->start[level] + number]);
            return number;
        }
        if (number < 64)
            break;
        number = number / 64 - 1; /* the words before this one */
    }
    return ORDERED_BITS_NONE;
}

size_t ordered_bits_at_or_above(const struct ordered_bits *bits, size_t number)
{
    size_t bound = bits->bound;
    for (int level = 0; level < bits->levels && number < bound; level++) {
        uint64_t word = bits->words[bits->start[level] + number / 64] & (UINT64_MAX << number % 64);
        if (word) {
            number = number / 64 * 64 + (size_t)__builtin_ctzll(word);
            while (level-- > 0)
                number = number * 64 + (size_t)__builtin_ctzll(bits->words[bits->start[level] + number]);
            return number;
        }
        number = number / 64 + 1;
        bound = (bound + 63) / 64;
    }
    return ORDERED_BITS_NONE;
}
