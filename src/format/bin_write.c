/*
 * Writing snapshot.bin: one section after the other into memory, the index, then the header in front.
 * Uses src/base, src/snapshot, zlib.
 */
#include "format/bin_write.h"

#include "base/array.h"
#include "format/bin_chunk.h"
#include "format/bin_write_parts.h"
#include "snapshot/state.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BIN_CHECKPOINT_CHUNKS 4  /* a checkpoint every so many chunks ... */
#define BIN_CHECKPOINTS_MAX 16   /* ... or fewer: making one walks the whole trace */

static void put_u16(unsigned char *at, unsigned number)
{
    at[0] = (unsigned char)number;
    at[1] = (unsigned char)(number >> 8);
}

static void put_u32(unsigned char *at, uint32_t number)
{
    put_u16(at, number & 0xffff);
    put_u16(at + 2, number >> 16);
}

static void put_u64(unsigned char *at, uint64_t number)
{
    put_u32(at, (uint32_t)number);
    put_u32(at + 4, (uint32_t)(number >> 32));
}

static uint32_t checksum(const void *bytes, size_t length)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, length);
}

int bin_end_section(struct bin_writer *writer, enum bin_section type, uint64_t moment, uint64_t count)
{
    struct text *body = &writer->body;
    size_t start = body->length;
    unsigned char head[BIN_SECTION_LENGTH] = {0};
    unsigned flags = type == BIN_CHECKPOINT || type == BIN_INDEX ? 0 : BIN_REQUIRED;
    text_append(body, (const char *)head, sizeof(head));
    if (text_failed(&writer->sink.bytes) || text_failed(body) || bin_pack(&writer->sink, body))
        return writer->status = STATUS_NO_MEMORY;
    if (body->length - start - sizeof(head) < writer->sink.bytes.length) {
        flags |= BIN_ZLIB;
    } else {
        body->length = start + sizeof(head);
        text_append(body, writer->sink.bytes.bytes, writer->sink.bytes.length);
    }
    if (text_failed(body) ||
        array_reserve(&writer->index, &writer->index_capacity, writer->index_count + 1, sizeof(*writer->index)))
        return writer->status = STATUS_NO_MEMORY;
    size_t packed = body->length - start - sizeof(head);
    put_u32(head, type);
    put_u32(head + 4, flags);
    put_u64(head + 8, writer->sink.bytes.length);
    put_u64(head + 16, packed);
    put_u32(head + 24, checksum(body->bytes + start + sizeof(head), packed));
    put_u32(head + 28, checksum(head, 28));
    memcpy(body->bytes + start, head, sizeof(head));
    writer->index[writer->index_count++] = (struct bin_index_row){
        .type = type, .offset = BIN_HEADER_LENGTH + start, .length = sizeof(head) + packed, .moment = moment,
        .count = count};
    writer->raw_total += writer->sink.bytes.length;
    bin_sink_clear(&writer->sink);
    return STATUS_OK;
}

/* Every chunk, then the states of the past. */
static int write_entries(struct bin_writer *writer)
{
    const struct snapshot *snapshot = writer->snapshot;
    size_t total = snapshot->entries.count;
    struct bin_work work = {0};
    uint32_t context_next = 0;
    if (bin_work_reserve(&work, total < BIN_ROWS ? total : BIN_ROWS))
        return writer->status = STATUS_NO_MEMORY;
    for (size_t first = 0; !writer->status && first < total; first += BIN_ROWS) {
        size_t count = total - first < BIN_ROWS ? total - first : BIN_ROWS;
        bin_put_chunk(&writer->sink, snapshot, first, count, &context_next, &work);
        bin_end_section(writer, BIN_ENTRIES, first, count);
    }
    bin_work_free(&work);
    return writer->status;
}

static int write_checkpoints(struct bin_writer *writer)
{
    size_t chunks = writer->snapshot->entries.count / BIN_ROWS;
    size_t step = BIN_CHECKPOINT_CHUNKS;
    while (chunks / step > BIN_CHECKPOINTS_MAX)
        step *= 2;
    for (size_t chunk = step; !writer->status && chunk <= chunks; chunk += step) {
        struct state state = {0};
        uint64_t moment = (uint64_t)chunk * BIN_ROWS;
        if (moment >= writer->snapshot->entries.count)
            break; /* that is the end */
        int status = state_at(writer->snapshot, moment, &state, NULL);
        if (status == STATUS_NO_MEMORY)
            return writer->status = status;
        if (!status)
            bin_write_state(writer, &state);
        state_free(&state);
    }
    return writer->status;
}

static int write_index(struct bin_writer *writer)
{
    size_t count = writer->index_count; /* without the index itself */
    for (size_t first = 0; first < count; first += BIN_ROWS) {
        size_t left = count - first;
        bin_put_rows(&writer->sink, &bin_schema_index, writer->index + first, left < BIN_ROWS ? left : BIN_ROWS);
    }
    return bin_end_section(writer, BIN_INDEX, 0, 0);
}

static void write_header(const struct bin_writer *writer, unsigned char header[BIN_HEADER_LENGTH])
{
    memset(header, 0, BIN_HEADER_LENGTH);
    memcpy(header, BIN_MAGIC, BIN_MAGIC_LENGTH);
    put_u16(header + 8, BIN_MAJOR);
    put_u16(header + 10, BIN_MINOR);
    put_u32(header + 12, BIN_HEADER_LENGTH);
    put_u64(header + 16, BIN_HEADER_LENGTH + writer->body.length);
    put_u64(header + 24, writer->index[writer->index_count - 1].offset);
    put_u64(header + 32, writer->snapshot->entries.count);
    put_u64(header + 40, writer->raw_total);
    put_u32(header + 48, (uint32_t)writer->index_count);
    put_u32(header + 60, checksum(header, 60));
}

int bin_write(const struct snapshot *snapshot, struct output *output, struct error *err)
{
    struct bin_writer writer = {.snapshot = snapshot};
    if (bin_graph_build(&writer.graph, snapshot) || bin_write_facts(&writer) || write_entries(&writer) ||
        write_checkpoints(&writer) || write_index(&writer)) {
        writer.status = error_no_memory(err);
    } else {
        unsigned char header[BIN_HEADER_LENGTH];
        write_header(&writer, header);
        output_write(output, header, sizeof(header));
        output_write(output, writer.body.bytes, writer.body.length);
    }
    int status = writer.status;
    bin_graph_free(&writer.graph);
    bin_sink_free(&writer.sink);
    text_free(&writer.body);
    free(writer.index);
    return status;
}
