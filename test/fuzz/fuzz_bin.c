/*
 * Fuzzing the reader of snapshot.bin.  Checksums would stop nearly everything at the door, so an input that does not
 * start with the magic number is a list of sections (type 1 byte, flags 1 byte, length 2 bytes, payload) behind 8 bytes
 * of options (first entry, last entry, entries), and gets its header and checksums here.
 */
#include "format/bin_layout.h"
#include "format/bin_write.h"
#include "format/format.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(unsigned char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static uint32_t checksum(const void *bytes, size_t length)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)length);
}

/* A file of the sections that the input lists; the caller frees it. */
static unsigned char *make_file(const uint8_t *data, size_t size, uint32_t entries, size_t *length)
{
    unsigned char *bytes = calloc(1, BIN_HEADER_LENGTH + size * 12 + BIN_SECTION_LENGTH);
    size_t at = BIN_HEADER_LENGTH, last = at, raw = 0, sections = 0;
    if (!bytes)
        abort();
    while (size >= 4) {
        size_t payload = (size_t)data[2] | (size_t)data[3] << 8;
        payload = payload < size - 4 ? payload : size - 4;
        put(bytes + at, data[0], 4);
        put(bytes + at + 4, data[1] & BIN_REQUIRED, 4);
        put(bytes + at + 8, payload, 8);
        put(bytes + at + 16, payload, 8);
        put(bytes + at + 24, checksum(data + 4, payload), 4);
        put(bytes + at + 28, checksum(bytes + at, 28), 4);
        memcpy(bytes + at + BIN_SECTION_LENGTH, data + 4, payload);
        last = at;
        at += BIN_SECTION_LENGTH + payload;
        raw += payload;
        sections++;
        data += 4 + payload;
        size -= 4 + payload;
    }
    memcpy(bytes, BIN_MAGIC, BIN_MAGIC_LENGTH);
    put(bytes + 8, BIN_MAJOR, 2);
    put(bytes + 12, BIN_HEADER_LENGTH, 4);
    put(bytes + 16, at, 8);
    put(bytes + 24, last, 8);
    put(bytes + 32, entries, 8);
    put(bytes + 40, raw, 8);
    put(bytes + 48, sections, 4);
    put(bytes + 60, checksum(bytes, 60), 4);
    *length = at;
    return bytes;
}

static void read_and_write(const void *bytes, size_t length, const struct format_options *options)
{
    struct snapshot *snapshot;
    struct output *output;
    unsigned char *again;
    size_t again_length;
    struct error err = {0};
    if (format_read_memory(bytes, length, options, &snapshot, &err))
        return;
    if (!snapshot_is_valid(snapshot, &err))
        abort();
    if (output_to_memory(&again, &again_length, &output, NULL) == 0) {
        if (bin_write(snapshot, output, NULL) == 0 && output_commit(output, NULL) == 0)
            free(again);
    }
    snapshot_free(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct format_options options = {.max_input = 64u << 20, .last_entry = UINT64_MAX};
    if (size < 8 || memcmp(data, BIN_MAGIC, BIN_MAGIC_LENGTH) == 0) {
        read_and_write(data, size, &options);
        return 0;
    }
    size_t length;
    uint32_t entries = (uint32_t)data[4] | (uint32_t)data[5] << 8 | (uint32_t)data[6] << 16;
    unsigned char *bytes = make_file(data + 8, size - 8, entries, &length);
    read_and_write(bytes, length, &options);
    options.first_entry = (uint64_t)data[0] | (uint64_t)data[1] << 8;
    options.last_entry = (uint64_t)data[2] | (uint64_t)data[3] << 8;
    options.skip_traces = data[7] & 1;
    read_and_write(bytes, length, &options);
    free(bytes);
    return 0;
}
