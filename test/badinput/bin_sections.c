/* Sections of snapshot.bin for tests. */
#include "bin_sections.h"

#include "format/bin_layout.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get_u64(const unsigned char *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

static void put_u32(unsigned char *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static void put_u64(unsigned char *at, uint64_t number)
{
    put_u32(at, (uint32_t)number);
    put_u32(at + 4, (uint32_t)(number >> 32));
}

static uint32_t checksum(const void *bytes, size_t length)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)length);
}

struct bin_parts bin_take_apart(const unsigned char *bytes, size_t length)
{
    struct bin_parts result = {.entries = get_u64(bytes + 32)};
    result.parts = calloc(get_u32(bytes + 48), sizeof(*result.parts));
    for (size_t at = BIN_HEADER_LENGTH; at < length;) {
        struct bin_part *part = &result.parts[result.count++];
        uint64_t packed = get_u64(bytes + at + 16);
        *part = (struct bin_part){get_u32(bytes + at), get_u32(bytes + at + 4) & ~(uint32_t)BIN_ZLIB,
                                  malloc(get_u64(bytes + at + 8) + 1), (size_t)get_u64(bytes + at + 8)};
        uLongf room = part->length;
        if (!(get_u32(bytes + at + 4) & BIN_ZLIB))
            memcpy(part->raw, bytes + at + BIN_SECTION_LENGTH, part->length);
        else if (uncompress(part->raw, &room, bytes + at + BIN_SECTION_LENGTH, packed) != Z_OK)
            abort();
        at += BIN_SECTION_LENGTH + packed;
    }
    return result;
}

void bin_parts_free(struct bin_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        free(parts->parts[i].raw);
    free(parts->parts);
}

unsigned char *bin_put_together(const struct bin_parts *parts, size_t *length)
{
    size_t at = BIN_HEADER_LENGTH, last = at;
    uint64_t raw = 0;
    *length = BIN_HEADER_LENGTH;
    for (size_t i = 0; i < parts->count; i++) {
        raw += parts->parts[i].length;
        *length += BIN_SECTION_LENGTH + parts->parts[i].length;
    }
    unsigned char *bytes = calloc(1, *length);
    for (size_t i = 0; i < parts->count; i++) {
        const struct bin_part *part = &parts->parts[i];
        put_u32(bytes + at, part->type);
        put_u32(bytes + at + 4, part->flags);
        put_u64(bytes + at + 8, part->length);
        put_u64(bytes + at + 16, part->length);
        put_u32(bytes + at + 24, checksum(part->raw, part->length));
        put_u32(bytes + at + 28, checksum(bytes + at, 28));
        memcpy(bytes + at + BIN_SECTION_LENGTH, part->raw, part->length);
        last = at;
        at += BIN_SECTION_LENGTH + part->length;
    }
    memcpy(bytes, BIN_MAGIC, BIN_MAGIC_LENGTH);
    bytes[8] = BIN_MAJOR;
    bytes[10] = BIN_MINOR;
    put_u32(bytes + 12, BIN_HEADER_LENGTH);
    put_u64(bytes + 16, *length);
    put_u64(bytes + 24, last);
    put_u64(bytes + 32, parts->entries);
    put_u64(bytes + 40, raw);
    put_u32(bytes + 48, (uint32_t)parts->count);
    put_u32(bytes + 60, checksum(bytes, 60));
    return bytes;
}
