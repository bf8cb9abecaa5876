/*
 * snapshot.bin taken apart into sections and put together again with right checksums, for tests that damage what is
 * inside of them.
 */
#ifndef TEST_BIN_SECTIONS_H
#define TEST_BIN_SECTIONS_H

#include <stddef.h>
#include <stdint.h>

struct bin_part {
    uint32_t type, flags;
    unsigned char *raw; /* unpacked */
    size_t length;
};

struct bin_parts {
    struct bin_part *parts;
    size_t count;
    uint64_t entries;
};

/* Of a file that is right; aborts otherwise. */
struct bin_parts bin_take_apart(const unsigned char *bytes, size_t length);
void bin_parts_free(struct bin_parts *parts);

/* The file with these sections, stored rather than packed. */
unsigned char *bin_put_together(const struct bin_parts *parts, size_t *length);

#endif
