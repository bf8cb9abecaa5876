/* Columns of numbers: choosing an encoding, encoding.  Decoding is in bin_decode.c.  Uses src/base, zlib. */
#include "format/bin_column.h"

#include "base/array.h"
#include "base/table.h"
#include "format/bin_layout.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BIN_SAMPLE 8192    /* values that the encodings are tried on */
#define BIN_WORDS 65536    /* of a dictionary */
#define BIN_MARK_GAP 128   /* blocks smaller than this do not pay for their tables */

/* What trying an encoding needs, kept between columns. */
struct bin_trial {
    z_stream stream;
    bool stream_made;
    unsigned char packed[8192];
    struct bin_sink sink;
    uint64_t *deltas;
    size_t delta_capacity;
};

static void bin_trial_free(struct bin_trial *trial)
{
    if (!trial)
        return;
    if (trial->stream_made)
        deflateEnd(&trial->stream);
    bin_sink_free(&trial->sink);
    free(trial->deltas);
    free(trial);
}

void bin_sink_clear(struct bin_sink *sink)
{
    bool failed = sink->bytes.failed;
    text_clear(&sink->bytes);
    sink->bytes.failed = failed;
    sink->mark_count = 0;
}

void bin_sink_free(struct bin_sink *sink)
{
    text_free(&sink->bytes);
    free(sink->marks);
    bin_trial_free(sink->trial);
    memset(sink, 0, sizeof(*sink));
}

void bin_sink_mark(struct bin_sink *sink)
{
    size_t last = sink->mark_count ? sink->marks[sink->mark_count - 1] : 0;
    if (sink->bytes.length < last + BIN_MARK_GAP)
        return;
    if (array_reserve(&sink->marks, &sink->mark_capacity, sink->mark_count + 1, sizeof(*sink->marks)))
        return; /* a worse ratio, nothing else */
    sink->marks[sink->mark_count++] = sink->bytes.length;
}

void bin_put_varint(struct bin_sink *sink, uint64_t number)
{
    char bytes[10];
    size_t length = 0;
    for (; number >= 128; number >>= 7)
        bytes[length++] = (char)((number & 127) | 128);
    bytes[length++] = (char)number;
    text_append(&sink->bytes, bytes, length);
}

void bin_put_table(struct bin_sink *sink, uint64_t rows)
{
    bin_put_varint(sink, rows);
}

void bin_put_table_end(struct bin_sink *sink)
{
    bin_put_varint(sink, 0);
}

static void bin_put_planes(struct bin_sink *sink, const uint64_t *values, size_t count, unsigned width)
{
    unsigned char buffer[4096];
    for (unsigned plane = 0; plane < width; plane++) {
        bin_sink_mark(sink);
        for (size_t i = 0; i < count;) {
            size_t filled = 0;
            for (; filled < sizeof(buffer) && i < count; filled++, i++)
                buffer[filled] = (unsigned char)(values[i] >> (8 * plane));
            text_append(&sink->bytes, (const char *)buffer, filled);
        }
    }
}

static unsigned bin_width(const uint64_t *values, size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= values[i];
    unsigned width = 1;
    while (width < 8 && all >> (8 * width))
        width++;
    return width;
}

static void bin_put_runs(struct bin_sink *sink, const uint64_t *values, size_t count)
{
    size_t runs = 0;
    for (size_t i = 0; i < count; i++)
        runs += i == 0 || values[i] != values[i - 1];
    bin_put_varint(sink, runs);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || values[i] != values[i - 1])
            bin_put_varint(sink, values[i]);
    bin_sink_mark(sink);
    size_t start = 0;
    for (size_t i = 1; i <= count; i++) {
        if (i < count && values[i] == values[i - 1])
            continue;
        bin_put_varint(sink, i - start - 1);
        start = i;
    }
}

/* False if there are too many different values (or no memory). */
static bool bin_put_dictionary(struct bin_sink *sink, const uint64_t *values, size_t count)
{
    struct table words = {0};
    uint64_t *indices = malloc(count * sizeof(*indices));
    size_t start = sink->bytes.length, marks = sink->mark_count;
    bool fits = indices != NULL;
    struct bin_sink list = {0};
    for (size_t i = 0; fits && i < count; i++) {
        size_t known = words.count;
        uint32_t *index = table_at(&words, values[i], (uint32_t)known);
        fits = index && words.count <= BIN_WORDS && (words.count <= count / 2 || words.count < 64);
        if (fits && words.count > known)
            bin_put_varint(&list, values[i]);
        if (fits)
            indices[i] = *index;
    }
    fits = fits && !text_failed(&list.bytes);
    if (fits) {
        bin_put_varint(sink, words.count);
        text_append(&sink->bytes, list.bytes.bytes, list.bytes.length);
        bin_put_planes(sink, indices, count, words.count <= 256 ? 1 : 2);
    } else {
        sink->bytes.length = start;
        sink->mark_count = marks;
    }
    bin_sink_free(&list);
    table_free(&words);
    free(indices);
    return fits;
}

/* The encoding's bytes; false if it cannot hold these values. */
static bool bin_encode(struct bin_sink *sink, unsigned encoding, const uint64_t *values, size_t count)
{
    switch (encoding & 15) {
    case BIN_CONSTANT:
        bin_put_varint(sink, values[0]);
        return true;
    case BIN_PLANES: {
        unsigned width = bin_width(values, count);
        text_char(&sink->bytes, (char)width);
        bin_put_planes(sink, values, count, width);
        return true;
    }
    case BIN_VARINT:
        for (size_t i = 0; i < count; i++)
            bin_put_varint(sink, values[i]);
        return true;
    case BIN_RUNS:
        bin_put_runs(sink, values, count);
        return true;
    default:
        return bin_put_dictionary(sink, values, count);
    }
}

/* zlib over the sink's bytes with a new block at each mark: calls back with what comes out. */
static int bin_deflate(z_stream *stream, const struct bin_sink *sink, unsigned char *buffer, size_t size,
                       struct text *packed, size_t *total)
{
    size_t at = 0;
    for (size_t i = 0; i <= sink->mark_count; i++) {
        bool last = i == sink->mark_count;
        size_t end = last ? sink->bytes.length : sink->marks[i];
        int result;
        do {
            size_t piece = end - at < (1u << 30) ? end - at : 1u << 30;
            int flush = at + piece < end ? Z_NO_FLUSH : last ? Z_FINISH : Z_BLOCK;
            stream->next_in = (Bytef *)(uintptr_t)(sink->bytes.bytes + at);
            stream->avail_in = (uInt)piece;
            do {
                stream->next_out = buffer;
                stream->avail_out = (uInt)size;
                result = deflate(stream, flush);
                if (packed)
                    text_append(packed, (const char *)buffer, size - stream->avail_out);
                *total += size - stream->avail_out;
            } while (result == Z_OK && stream->avail_out == 0);
            at += piece;
        } while (at < end);
        if (last && result != Z_STREAM_END)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

int bin_pack(const struct bin_sink *sink, struct text *packed)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, sink->bytes.length < 1u << 17 ? 9 : 6, Z_DEFLATED, 15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return STATUS_NO_MEMORY;
    unsigned char buffer[16384];
    size_t total = 0;
    int status = bin_deflate(&stream, sink, buffer, sizeof(buffer), packed, &total);
    deflateEnd(&stream);
    return status || text_failed(packed) ? STATUS_NO_MEMORY : STATUS_OK;
}

static struct bin_trial *bin_trial_get(struct bin_sink *sink, size_t count)
{
    if (!sink->trial)
        sink->trial = calloc(1, sizeof(*sink->trial));
    struct bin_trial *trial = sink->trial;
    if (!trial || array_reserve(&trial->deltas, &trial->delta_capacity, count, sizeof(*trial->deltas)))
        return NULL;
    if (!trial->stream_made)
        trial->stream_made = deflateInit2(&trial->stream, 4, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK;
    return trial->stream_made ? trial : NULL;
}

static size_t bin_try(struct bin_trial *trial, unsigned encoding, const uint64_t *values, size_t count)
{
    bin_sink_clear(&trial->sink);
    size_t total = 0;
    if (!bin_encode(&trial->sink, encoding, values, count) || text_failed(&trial->sink.bytes))
        return SIZE_MAX;
    if (trial->sink.bytes.length < 24)
        return trial->sink.bytes.length;
    deflateReset(&trial->stream);
    if (bin_deflate(&trial->stream, &trial->sink, trial->packed, sizeof(trial->packed), NULL, &total))
        return SIZE_MAX;
    return total;
}

static void bin_deltas(uint64_t *deltas, const uint64_t *values, size_t count)
{
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        deltas[i] = bin_zigzag(values[i] - before);
        before = values[i];
    }
}

/* The cheapest encoding, judged on a piece from the middle. */
static unsigned bin_choose(struct bin_trial *trial, const uint64_t *values, size_t count)
{
    static const unsigned candidates[] = {BIN_VARINT,           BIN_PLANES,     BIN_DICTIONARY,
                                          BIN_DELTA | BIN_VARINT, BIN_DELTA | BIN_PLANES, BIN_RUNS,
                                          BIN_DELTA | BIN_RUNS};
    size_t start = count > BIN_SAMPLE ? (count - BIN_SAMPLE) / 2 : 0;
    size_t length = count > BIN_SAMPLE ? BIN_SAMPLE : count;
    unsigned best = BIN_VARINT;
    size_t best_size = SIZE_MAX;
    for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
        const uint64_t *from = candidates[i] & BIN_DELTA ? trial->deltas : values;
        size_t size = bin_try(trial, candidates[i], from + start, length);
        if (size < best_size) {
            best_size = size;
            best = candidates[i];
        }
    }
    return best;
}

static void bin_put_head(struct bin_sink *sink, unsigned number, unsigned encoding, size_t count, size_t length)
{
    bin_put_varint(sink, number);
    text_char(&sink->bytes, (char)encoding);
    bin_put_varint(sink, count);
    bin_put_varint(sink, length);
}

static bool bin_is_constant(const uint64_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

void bin_put_column(struct bin_sink *sink, unsigned number, const uint64_t *values, size_t count)
{
    if (!count) {
        bin_put_head(sink, number, BIN_BYTES, 0, 0);
        return;
    }
    struct bin_trial *trial = bin_trial_get(sink, count);
    if (!trial) {
        sink->bytes.failed = true;
        return;
    }
    unsigned encoding = BIN_CONSTANT;
    if (!bin_is_constant(values, count)) {
        bin_deltas(trial->deltas, values, count);
        encoding = bin_choose(trial, values, count);
    }
    const uint64_t *from = encoding & BIN_DELTA ? trial->deltas : values;
    bin_sink_clear(&trial->sink);
    if (!bin_encode(&trial->sink, encoding, from, count)) { /* the sample had few different values, the rest has many */
        encoding = BIN_PLANES;
        bin_sink_clear(&trial->sink);
        bin_encode(&trial->sink, encoding, from = values, count);
    }
    if (text_failed(&trial->sink.bytes)) {
        sink->bytes.failed = true;
        return;
    }
    bin_put_head(sink, number, encoding, count, trial->sink.bytes.length);
    bin_sink_mark(sink);
    size_t start = sink->bytes.length;
    for (size_t i = 0, at = 0; i <= trial->sink.mark_count; i++) {
        size_t end = i < trial->sink.mark_count ? trial->sink.marks[i] : trial->sink.bytes.length;
        text_append(&sink->bytes, trial->sink.bytes.bytes + at, end - at);
        at = end;
        if (i < trial->sink.mark_count && sink->bytes.length > start)
            bin_sink_mark(sink);
    }
    bin_sink_mark(sink);
}

void bin_put_bytes_column(struct bin_sink *sink, unsigned number, const void *bytes, size_t count)
{
    bin_put_head(sink, number, BIN_BYTES, count, count);
    bin_sink_mark(sink);
    text_append(&sink->bytes, bytes, count);
    bin_sink_mark(sink);
}
