/*
 * Reading snapshot.bin: header, sections, checksums, unpacking.  Uses src/base, src/snapshot, zlib.
 */
#include "format/bin_reader.h"

#include "format/slice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BIN_PIECE 65536u

struct bin_head {
    uint32_t type, flags, payload_checksum;
    uint64_t raw, packed;
};

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get_u64(const unsigned char *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

static uint32_t checksum(const void *bytes, size_t length)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, length);
}

static const char *section_name(unsigned type)
{
    static const char *const names[BIN_SECTION_COUNT] = {
        NULL,      "info",    "strings",   "string objects", "modules",     "frames",     "stacks",   "contexts",
        "streams", "pools",   "calls",     "shapes",         "processes",   "devices",    "statistics", "values",
        "items",   "odd values", "settings", "annotations",  "entries",     "segments",   "blocks",   "checkpoint",
        "index"};
    return type < BIN_SECTION_COUNT && names[type] ? names[type] : "unknown";
}

int bin_damaged(struct bin_reader *reader, const char *what)
{
    return error_at(reader->err, STATUS_INPUT, reader->at, "damaged: %s in section '%s'", what,
                    section_name(reader->type));
}

int bin_hold(struct bin_reader *reader, uint64_t bytes)
{
    reader->held += bytes;
    if (reader->held + reader->raw_length > input_limit(reader->input))
        return error_at(reader->err, STATUS_NO_MEMORY, reader->at,
                        "unpacks to more than %" PRIu64 " bytes (--max-input)", input_limit(reader->input));
    return STATUS_OK;
}

bool bin_is_bin(const unsigned char *start, size_t length)
{
    return length >= BIN_MAGIC_LENGTH && memcmp(start, BIN_MAGIC, BIN_MAGIC_LENGTH) == 0;
}

bool bin_is_start(const unsigned char *start, size_t length)
{
    return length && length < BIN_MAGIC_LENGTH && memcmp(start, BIN_MAGIC, length) == 0;
}

static int check_version(const struct bin_reader *reader, const unsigned char *header, bool intact)
{
    unsigned major = (unsigned)header[8] | (unsigned)header[9] << 8;
    unsigned minor = (unsigned)header[10] | (unsigned)header[11] << 8;
    if (major == BIN_MAJOR)
        return STATUS_OK;
    if (major == 0)
        return error_at(reader->err, STATUS_INPUT, 8, "damaged: there is no snapshot.bin version 0");
    return error_at(reader->err, intact ? STATUS_UNSUPPORTED : STATUS_INPUT, 8,
                    "snapshot.bin version %u.%u is newer than this program, which reads versions 1.x%s", major, minor,
                    intact ? "" : " (or the header is damaged: its checksum does not match)");
}

static int read_header(struct bin_reader *reader)
{
    unsigned char header[BIN_HEADER_MAX];
    int status = input_read(reader->input, header, 16, "the header", reader->err);
    if (status)
        return status;
    if (!bin_is_bin(header, BIN_MAGIC_LENGTH))
        return error_at(reader->err, STATUS_INPUT, 0, "not a snapshot.bin: it does not start with the magic number");
    uint32_t length = get_u32(header + 12);
    bool bounded = length >= BIN_HEADER_LENGTH && length <= BIN_HEADER_MAX;
    if (bounded && (status = input_read(reader->input, header + 16, length - 16, "the header", reader->err)))
        return status;
    bool intact = bounded && get_u32(header + length - 4) == checksum(header, length - 4);
    if ((status = check_version(reader, header, intact)))
        return status;
    if (!intact)
        return error_at(reader->err, STATUS_INPUT, 0, "damaged: the checksum of the header does not match");
    if (get_u32(header + 52))
        return error_at(reader->err, STATUS_UNSUPPORTED, 52, "needs a feature that this program does not know");
    reader->minor = (unsigned)header[10] | (unsigned)header[11] << 8;
    reader->file_size = get_u64(header + 16);
    reader->index_offset = get_u64(header + 24);
    reader->entry_count = get_u64(header + 32);
    reader->raw_total = get_u64(header + 40);
    reader->section_count = get_u32(header + 48);
    reader->at = length;
    if (reader->file_size < length || reader->index_offset < length || reader->index_offset > reader->file_size)
        return error_at(reader->err, STATUS_INPUT, 16, "damaged: the header's sizes contradict each other");
    if (input_is_seekable(reader->input) && input_size(reader->input) != reader->file_size)
        return error_at(reader->err, STATUS_INPUT,
                        input_size(reader->input) < reader->file_size ? input_size(reader->input) : reader->file_size,
                        "%s: %" PRIu64 " bytes of %" PRIu64,
                        input_size(reader->input) < reader->file_size ? "cut short" : "something follows the end",
                        input_size(reader->input), reader->file_size);
    return STATUS_OK;
}

/* Bytes at an offset of the file; in order, unless sections are picked. */
static int read_bytes(struct bin_reader *reader, uint64_t offset, void *buffer, size_t length, const char *what)
{
    if (reader->random)
        return input_read_at(reader->input, offset, buffer, length, reader->err);
    return input_read(reader->input, buffer, length, what, reader->err);
}

static int read_head(struct bin_reader *reader, uint64_t offset, struct bin_head *head)
{
    unsigned char bytes[BIN_SECTION_LENGTH];
    reader->at = offset;
    reader->raw_length = 0;
    if (reader->file_size - offset < sizeof(bytes))
        return error_at(reader->err, STATUS_INPUT, offset, "damaged: the last section is cut short");
    int status = read_bytes(reader, offset, bytes, sizeof(bytes), "a section's header");
    if (status)
        return status;
    reader->type = get_u32(bytes);
    if (get_u32(bytes + 28) != checksum(bytes, 28))
        return error_at(reader->err, STATUS_INPUT, offset, "damaged: the checksum of a section's header does not match");
    *head = (struct bin_head){reader->type, get_u32(bytes + 4), get_u32(bytes + 24), get_u64(bytes + 8),
                              get_u64(bytes + 16)};
    if (head->packed > reader->file_size - offset - sizeof(bytes))
        return bin_damaged(reader, "more bytes than the file has");
    if (head->flags & BIN_ZLIB ? head->raw / BIN_RATIO > head->packed : head->raw != head->packed)
        return bin_damaged(reader, "an impossible length");
    if (head->type == 0 || ((head->type >= BIN_SECTION_COUNT) && head->flags & BIN_REQUIRED))
        return error_at(reader->err, STATUS_UNSUPPORTED, offset,
                        "section type %" PRIu32 " must be understood, and this program does not know it: the file is of "
                        "version 1.%u", head->type, reader->minor);
    return STATUS_OK;
}

static int raw_reserve(struct bin_reader *reader, size_t need)
{
    if (need <= reader->raw_capacity)
        return STATUS_OK;
    unsigned char *moved = realloc(reader->raw, need);
    if (!moved)
        return error_no_memory(reader->err);
    reader->raw = moved;
    reader->raw_capacity = need;
    return STATUS_OK;
}

/* Unpack one piece; the buffer grows with what really comes out. */
static int unpack_piece(struct bin_reader *reader, z_stream *stream, const struct bin_head *head, bool *ended)
{
    while (stream->avail_in && !*ended) {
        unsigned char beyond;
        bool full = reader->raw_length == head->raw;
        if (!full && reader->raw_length == reader->raw_capacity) {
            uint64_t wanted = (uint64_t)reader->raw_capacity * 2 + BIN_PIECE;
            if (raw_reserve(reader, (size_t)(wanted < head->raw ? wanted : head->raw)))
                return STATUS_NO_MEMORY;
        }
        uint64_t limit = reader->raw_capacity < head->raw ? reader->raw_capacity : head->raw;
        uint64_t space = limit - reader->raw_length;
        uInt room = full ? 1 : (uInt)(space < 1u << 30 ? space : 1u << 30);
        stream->next_out = full ? &beyond : reader->raw + reader->raw_length;
        stream->avail_out = room;
        int result = inflate(stream, Z_NO_FLUSH);
        if (full && stream->avail_out == 0)
            return bin_damaged(reader, "more data than announced");
        if (!full)
            reader->raw_length += room - stream->avail_out;
        *ended = result == Z_STREAM_END;
        if (!*ended && result != Z_OK)
            return bin_damaged(reader, "data that does not unpack");
        if (bin_hold(reader, 0))
            return STATUS_NO_MEMORY;
    }
    return *ended && stream->avail_in ? bin_damaged(reader, "bytes after the packed data") : STATUS_OK;
}

/* The payload into reader->raw; unpacked only if `wanted`. */
static int read_payload_with(struct bin_reader *reader, const struct bin_head *head, z_stream *stream, bool wanted,
                             unsigned char *piece)
{
    uLong sum = crc32(0, NULL, 0);
    bool ended = false;
    int status = STATUS_OK;
    for (uint64_t done = 0; !status && done < head->packed;) {
        size_t length = (size_t)(head->packed - done < BIN_PIECE ? head->packed - done : BIN_PIECE);
        status = read_bytes(reader, reader->at + BIN_SECTION_LENGTH + done, piece, length, "a section");
        if (status)
            return status;
        sum = crc32(sum, piece, (uInt)length);
        done += length;
        if (!wanted)
            continue;
        if (head->flags & BIN_ZLIB) {
            stream->next_in = piece;
            stream->avail_in = (uInt)length;
            status = unpack_piece(reader, stream, head, &ended);
        } else if (!(status = bin_hold(reader, length)) && !(status = raw_reserve(reader, reader->raw_length + length))) {
            reader->held -= length;
            memcpy(reader->raw + reader->raw_length, piece, length);
            reader->raw_length += length;
        }
    }
    if (!status && (uint32_t)sum != head->payload_checksum)
        return bin_damaged(reader, "a checksum that does not match");
    if (!status && wanted && (reader->raw_length != head->raw || (head->flags & BIN_ZLIB && !ended)))
        return bin_damaged(reader, "less data than announced");
    return status;
}

static int read_payload(struct bin_reader *reader, const struct bin_head *head, bool wanted)
{
    z_stream stream = {0};
    unsigned char *piece = malloc(BIN_PIECE);
    if (!piece || inflateInit(&stream) != Z_OK) {
        free(piece);
        return error_no_memory(reader->err);
    }
    int status = read_payload_with(reader, head, &stream, wanted, piece);
    inflateEnd(&stream);
    free(piece);
    return status;
}

/* Memory of one entry with the columns that there are. */
static size_t entry_bytes(const struct bin_reader *reader)
{
    const struct entries *entries = &reader->snapshot->entries;
    return 1 + 1 + 2 + 4 + 8 + 8 + 8 + 4 + 2 + (entries->compile_context ? 4u : 0) + (entries->user_metadata ? 4u : 0) +
           (entries->process ? 2u : 0) + (entries->pool ? 4u : 0) + (entries->thread ? 4u : 0) +
           (entries->call ? 2u : 0) + (entries->kind ? 1u : 0);
}

/* All at once if the file is long enough to be believed, else with what was really there. */
static int grow_entries(struct bin_reader *reader, uint64_t more)
{
    struct entries *entries = &reader->snapshot->entries;
    uint64_t most = reader->entry_count - reader->loaded_first;
    uint64_t wanted = entries->count + more + entries->count / 2;
    if (wanted > most || most / 64 <= reader->file_size)
        wanted = most;
    return entries_reserve(entries, (size_t)wanted);
}

static int read_chunk(struct bin_reader *reader, struct bin_cursor cursor)
{
    struct entries *entries = &reader->snapshot->entries;
    uint64_t first, count;
    if (!reader->has_info)
        return bin_damaged(reader, "entries before the section 'info'");
    if (!bin_chunk_bounds(cursor, &first, &count) || first != reader->next_entry ||
        count > reader->entry_count - first)
        return bin_damaged(reader, "entries out of order");
    int status = bin_hold(reader, count * entry_bytes(reader));
    if (status)
        return status;
    if (entries->count + count > entries->capacity && grow_entries(reader, count))
        return error_no_memory(reader->err);
    if (bin_work_reserve(&reader->work, (size_t)count))
        return error_no_memory(reader->err);
    if (!bin_get_chunk(cursor, entries, &reader->work))
        return bin_damaged(reader, "entries that make no sense");
    reader->next_entry += count;
    return STATUS_OK;
}

static int read_section(struct bin_reader *reader, uint64_t offset, uint64_t *next)
{
    struct bin_head head = {0};
    int status = read_head(reader, offset, &head);
    if (status)
        return status;
    bool wanted = head.type < BIN_SECTION_COUNT && (head.type != BIN_CHECKPOINT || reader->random) &&
                  (head.type != BIN_ENTRIES || !reader->options.skip_traces);
    if ((status = read_payload(reader, &head, wanted)))
        return status;
    reader->sections++;
    reader->raw_sum += head.raw;
    *next = offset + BIN_SECTION_LENGTH + head.packed;
    if (!wanted)
        return STATUS_OK;
    struct bin_cursor cursor = {reader->raw, reader->raw + reader->raw_length};
    if (head.type == BIN_ENTRIES)
        return read_chunk(reader, cursor);
    return bin_read_part(reader, &cursor);
}

/* From front to back, all of it. */
static int read_in_order(struct bin_reader *reader)
{
    uint64_t offset = reader->at;
    bool ended = false;
    while (offset < reader->file_size) {
        uint64_t next;
        if (ended)
            return bin_damaged(reader, "something after the index");
        int status = read_section(reader, offset, &next);
        if (status)
            return status;
        ended = reader->type == BIN_INDEX;
        if (ended && offset != reader->index_offset)
            return bin_damaged(reader, "the index is not where the header says");
        offset = next;
    }
    reader->at = reader->file_size;
    if (!ended || reader->sections != reader->section_count || reader->raw_sum != reader->raw_total)
        return error_at(reader->err, STATUS_INPUT, 16, "damaged: the sections are not those that the header counts");
    const unsigned char *more;
    size_t available;
    int status = input_peek(reader->input, 1, &more, &available, reader->err);
    if (!status && available)
        status = error_at(reader->err, STATUS_INPUT, reader->file_size, "something follows the end");
    return status ? status : input_check_end(reader->input, reader->err);
}

/* Which entries were asked for, within 0..entry_count. */
static void find_wanted(const struct bin_reader *reader, uint64_t *first, uint64_t *last)
{
    const struct format_options *options = &reader->options;
    *last = options->last_entry && options->last_entry < reader->entry_count ? options->last_entry
                                                                             : reader->entry_count;
    *first = options->first_entry < *last ? options->first_entry : *last;
}

/* Of the checkpoints in the index: the last one not after, and the first one not before the moment. */
static void find_checkpoints(const struct bin_reader *reader, uint64_t moment, const struct bin_index_row **before,
                             const struct bin_index_row **after)
{
    *before = *after = NULL;
    for (size_t i = 0; i < reader->index_count; i++) {
        const struct bin_index_row *row = &reader->index[i];
        if (row->type != BIN_CHECKPOINT)
            continue;
        if (row->moment <= moment && (!*before || row->moment > (*before)->moment))
            *before = row;
        if (row->moment >= moment && (!*after || row->moment < (*after)->moment))
            *after = row;
    }
}

static int check_index(struct bin_reader *reader)
{
    uint64_t entries = 0;
    for (size_t i = 0; i < reader->index_count; i++) {
        const struct bin_index_row *row = &reader->index[i];
        if (row->offset > reader->index_offset || row->length > reader->index_offset - row->offset ||
            (row->type == BIN_ENTRIES && row->moment != entries))
            return bin_damaged(reader, "a row that points nowhere");
        if (row->type == BIN_ENTRIES && __builtin_add_overflow(entries, row->count, &entries))
            return bin_damaged(reader, "too many entries");
    }
    return entries == reader->entry_count ? STATUS_OK : bin_damaged(reader, "another number of entries than the header");
}

/* A checkpoint by its row. */
static int read_checkpoint(struct bin_reader *reader, const struct bin_index_row *row, struct state *state, bool *has)
{
    uint64_t next;
    reader->into = state;
    int status = read_section(reader, row->offset, &next);
    reader->into = NULL;
    if (!status && (reader->type != BIN_CHECKPOINT || state->moment != row->moment))
        status = bin_damaged(reader, "another section than the index says");
    *has = !status;
    return status;
}

/* Only the sections that the entries asked for need, by the index. */
static int read_by_index(struct bin_reader *reader)
{
    uint64_t first, last, next, end = reader->entry_count;
    const struct bin_index_row *before = NULL, *after = NULL;
    reader->random = true;
    int status = read_section(reader, reader->index_offset, &next);
    if (status)
        return status;
    if (reader->type != BIN_INDEX || next != reader->file_size)
        return bin_damaged(reader, "the index is not where the header says");
    if ((status = check_index(reader)))
        return status;
    find_wanted(reader, &first, &last);
    if (!reader->options.skip_traces)
        find_checkpoints(reader, last, &before, &after);
    if (reader->options.skip_traces || last == end)
        before = after = NULL;
    else if (after)
        end = after->moment;
    if (after && after->moment == last)
        before = NULL; /* nothing has to be undone */
    if (before && !(status = read_checkpoint(reader, before, &reader->before, &reader->has_before)) &&
        before->moment < first)
        first = before->moment; /* who allocated what is alive at the moment is said from there on */
    else if (!before && last < end)
        first = 0;
    if (!status && after)
        status = read_checkpoint(reader, after, &reader->after, &reader->has_after);
    reader->loaded_first = reader->next_entry = reader->options.skip_traces ? 0 : last; /* if there is no chunk */
    bool started = false;
    for (size_t i = 0; !status && i < reader->index_count; i++) {
        const struct bin_index_row *row = &reader->index[i];
        bool chunk = row->type == BIN_ENTRIES;
        if (row->type == BIN_CHECKPOINT || row->type == BIN_INDEX ||
            (chunk && (reader->options.skip_traces || row->moment >= end || row->moment + row->count <= first)) ||
            (after && (row->type == BIN_SEGMENTS || row->type == BIN_BLOCKS)))
            continue;
        if (chunk && !started) {
            started = true;
            reader->loaded_first = reader->next_entry = row->moment;
        }
        status = read_section(reader, row->offset, &next);
        if (!status && (reader->type != row->type || next - row->offset != row->length))
            status = bin_damaged(reader, "another section than the index says");
    }
    return status;
}

static bool is_partial(const struct bin_reader *reader)
{
    uint64_t first, last;
    find_wanted(reader, &first, &last);
    return reader->options.skip_traces || first > 0 || last < reader->entry_count;
}

/* Keep what was asked for of what was read. */
static int keep_wanted(struct bin_reader *reader)
{
    uint64_t first, last, loaded = reader->loaded_first;
    bool skip = reader->options.skip_traces;
    find_wanted(reader, &first, &last);
    reader->snapshot->first_entry = loaded;
    return slice_entries(reader->snapshot, skip ? 0 : first - loaded, skip ? 0 : last - loaded,
                         reader->has_before ? &reader->before : NULL, reader->has_after, reader->err);
}

static int read_file(struct bin_reader *reader)
{
    int status = read_header(reader);
    if (status)
        return status;
    reader->partial = is_partial(reader);
    status = reader->partial && input_is_seekable(reader->input) ? read_by_index(reader) : read_in_order(reader);
    if (!status)
        status = bin_finish_parts(reader);
    if (!status && !snapshot_is_valid(reader->snapshot, reader->err)) {
        error_prefix(reader->err, "damaged: ");
        status = STATUS_INPUT;
    }
    if (!status && reader->partial)
        status = keep_wanted(reader);
    return status ? status : bin_check_rows(reader);
}

int bin_read(struct input *input, const struct format_options *options, struct snapshot **result, struct error *err)
{
    struct bin_reader reader = {.input = input, .err = err, .options = options ? *options : FORMAT_OPTIONS_ALL};
    reader.snapshot = snapshot_new(SOURCE_RECORDED);
    int status = reader.snapshot ? read_file(&reader) : error_no_memory(err);
    if (status) {
        snapshot_free(reader.snapshot);
        reader.snapshot = NULL;
    }
    free(reader.raw);
    free(reader.nodes);
    free(reader.node_lengths);
    free(reader.scratch);
    bin_work_free(&reader.work);
    free(reader.index);
    state_free(&reader.before);
    state_free(&reader.after);
    *result = reader.snapshot;
    return status;
}
