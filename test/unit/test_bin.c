/* snapshot.bin: what was written is what is read, whole or in part; newer files are read or refused as they say. */
#include "sample.h"

#include "base/output.h"
#include "format/bin_layout.h"
#include "format/bin_read.h"
#include "format/bin_write.h"
#include "snapshot/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

static int read_bytes(const void *bytes, size_t length, const struct format_options *options, struct snapshot **result,
                      struct error *err)
{
    struct input *input;
    assert_int_equal(input_from_memory(bytes, length, 0, &input, err), 0);
    int status = bin_read(input, options, result, err);
    input_close(input);
    return status;
}

static struct snapshot *read_good(const void *bytes, size_t length, const struct format_options *options)
{
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    if (read_bytes(bytes, length, options, &snapshot, &err))
        fail_msg("not read: %s (at %llu)", err.message, (unsigned long long)err.offset);
    return snapshot;
}

static void assert_same_twice(struct snapshot *snapshot)
{
    size_t first_length, second_length;
    unsigned char *first = sample_bin(snapshot, &first_length);
    struct snapshot *again = read_good(first, first_length, NULL);
    unsigned char *second = sample_bin(again, &second_length);
    assert_int_equal(first_length, second_length);
    assert_memory_equal(first, second, first_length);
    assert_int_equal(snapshot->entries.count, again->entries.count);
    free(first);
    free(second);
    snapshot_free(again);
}

static void every_table_survives_byte_for_byte(void **state)
{
    (void)state;
    struct snapshot *snapshot = sample_full();
    assert_same_twice(snapshot);
    snapshot_free(snapshot);
}

/* Byte equality could hide a column that neither side handles: look at the values themselves. */
static void every_field_survives(void **state)
{
    (void)state;
    struct snapshot *a = sample_full();
    size_t length;
    unsigned char *bytes = sample_bin(a, &length);
    struct snapshot *b = read_good(bytes, length, NULL);
    for (size_t i = 0; i < a->entries.count; i++) {
        struct entry x, y;
        memset(&x, 0, sizeof(x));
        memset(&y, 0, sizeof(y));
        x = snapshot_entry(a, i);
        y = snapshot_entry(b, i);
        assert_int_equal(x.action, y.action);
        assert_int_equal(x.flags, y.flags);
        assert_int_equal(x.device, y.device);
        assert_int_equal(x.process, y.process);
        assert_int_equal(x.shape, y.shape);
        assert_int_equal(x.call, y.call);
        assert_int_equal(x.kind, y.kind);
        assert_true(x.stream == y.stream && x.address == y.address && x.size == y.size && x.time == y.time);
        assert_int_equal(x.context, y.context);
        assert_int_equal(x.compile_context, y.compile_context);
        assert_int_equal(x.user_metadata, y.user_metadata);
        assert_int_equal(x.pool, y.pool);
        assert_int_equal(x.thread, y.thread);
    }
    for (size_t i = 0; i < a->end.block_count; i++) {
        const struct block *x = &a->end.blocks[i], *y = &b->end.blocks[i];
        assert_true(x->address == y->address && x->size == y->size && x->requested == y->requested);
        assert_true(x->context == y->context && x->segment == y->segment && x->shape == y->shape);
        assert_true(x->state == y->state && x->flags == y->flags);
    }
    for (size_t i = 0; i < a->end.segment_count; i++) {
        const struct segment *x = &a->end.segments[i], *y = &b->end.segments[i];
        assert_true(x->address == y->address && x->total_size == y->total_size && x->stream == y->stream);
        assert_true(x->allocated_size == y->allocated_size && x->active_size == y->active_size);
        assert_true(x->requested_size == y->requested_size && x->context == y->context && x->pool == y->pool);
        assert_true(x->first_block == y->first_block && x->block_count == y->block_count);
        assert_true(x->process == y->process && x->device == y->device && x->kind == y->kind);
        assert_true(x->is_large == y->is_large && x->is_expandable == y->is_expandable);
    }
    for (size_t i = 0; i < a->stack_count; i++)
        assert_memory_equal(&a->stacks[i], &b->stacks[i], sizeof(a->stacks[i]));
    for (size_t i = 0; i < a->frame_count; i++) {
        const struct frame *x = &a->frames[i], *y = &b->frames[i];
        assert_true(x->name == y->name && x->filename == y->filename && x->line == y->line && x->module == y->module);
        assert_true(x->flags == y->flags && x->offset == y->offset && x->shape == y->shape);
    }
    assert_memory_equal(a->modules[0].build_id, b->modules[0].build_id, 32);
    assert_int_equal(b->modules[0].build_id_length, 20);
    for (size_t i = 0; i < 2; i++) {
        const struct process *x = &a->processes[i], *y = &b->processes[i];
        assert_true(x->pid == y->pid && x->parent == y->parent && x->program == y->program && x->host == y->host);
        assert_true(x->arguments == y->arguments && x->boot_id == y->boot_id && x->driver == y->driver);
        assert_true(x->rank == y->rank && x->start_time == y->start_time && x->end_time == y->end_time);
        assert_true(x->exit_status == y->exit_status && x->implied_blocks == y->implied_blocks);
        assert_true(x->incomplete == y->incomplete && x->lost_stacks == y->lost_stacks);
        assert_true(x->unrecorded == y->unrecorded);
        assert_true(x->lost_state == y->lost_state && x->clock_realtime == y->clock_realtime);
        assert_true(x->clock_monotonic == y->clock_monotonic);
    }
    for (size_t i = 0; i < 2; i++) {
        const struct device *x = &a->devices[i], *y = &b->devices[i];
        assert_memory_equal(&x->stats, &y->stats, sizeof(x->stats));
        assert_memory_equal(x->uuid, y->uuid, 16);
        assert_true(x->name == y->name && x->total == y->total && x->max_entries == y->max_entries);
        assert_true(x->lost_entries == y->lost_entries && x->has_stats == y->has_stats);
        assert_true(x->stats_exact == y->stats_exact && x->has_uuid == y->has_uuid && x->ordinal == y->ordinal);
    }
    assert_int_equal(b->trace_count, 4);
    assert_int_equal(b->annotations[0].time, 99);
    assert_int_equal(b->annotations[0].stage, 1);
    assert_false(b->end.exact);
    assert_true(b->has_raw);
    free(bytes);
    snapshot_free(a);
    snapshot_free(b);
}

static void values_keep_content_sharing_and_cycles(void **state)
{
    (void)state;
    struct snapshot *a = sample_full();
    size_t length;
    unsigned char *bytes = sample_bin(a, &length);
    struct snapshot *b = read_good(bytes, length, NULL);
    value dict = b->raw, extra, tuple, top;
    assert_true(snapshot_get_setting(b, "extra", &extra));
    assert_true(extra == dict);
    const value *items = values_items(b->values, dict);
    assert_int_equal(values_count(b->values, dict), 8);
    tuple = items[1];
    assert_true(items[3] == dict);
    assert_true(items[5] == tuple);
    assert_true(snapshot_get_odd(b, ROW_TOP, 0, 2, &top));
    assert_true(top == tuple);
    const value *numbers = values_items(b->values, tuple);
    int64_t number;
    uint64_t big;
    assert_true(values_get_int(b->values, numbers[0], &number) && number == -1);
    assert_true(values_get_int(b->values, numbers[1], &number) && number == (INT64_C(1) << 59) - 1);
    assert_true(values_get_int(b->values, numbers[2], &number) && number == -(INT64_C(1) << 59));
    assert_true(values_get_unsigned(b->values, numbers[3], &big) && big == UINT64_MAX);
    size_t size;
    const unsigned char *long_bytes = values_long_bytes(b->values, numbers[4], &size);
    assert_int_equal(size, 9);
    assert_int_equal(long_bytes[8], 0x3f);
    assert_true(values_get_float(b->values, numbers[5]) == -0.5);
    assert_memory_equal(values_get_bytes(b->values, numbers[6], &size), "\0\xff", 2);
    assert_int_equal(value_kind(numbers[7]), VALUE_BYTEARRAY);
    assert_true(numbers[12] == value_row(ROW_CONTEXT, 2));
    free(bytes);
    snapshot_free(a);
    snapshot_free(b);
}

static void empty_and_long_traces_survive(void **state)
{
    (void)state;
    struct snapshot *empty = snapshot_new(SOURCE_RECORDED);
    assert_same_twice(empty);
    assert_int_equal(entries_need_thread(&empty->entries), 0); /* a column without a row is still a column */
    size_t length;
    unsigned char *bytes = sample_bin(empty, &length);
    struct snapshot *again = read_good(bytes, length, NULL);
    assert_non_null(again->entries.thread);
    assert_null(again->entries.call);
    free(bytes);
    snapshot_free(again);
    snapshot_free(empty);
    size_t counts[] = {1, 2, 65535, 65536, 65537, 200000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct snapshot *snapshot = sample_trace(counts[i], counts[i]);
        assert_same_twice(snapshot);
        snapshot_free(snapshot);
    }
}

static void assert_same_state(const struct state *a, const struct state *b)
{
    assert_int_equal(a->segment_count, b->segment_count);
    assert_int_equal(a->block_count, b->block_count);
    assert_int_equal(a->exact, b->exact);
    for (size_t i = 0; i < a->block_count; i++) {
        const struct block *x = &a->blocks[i], *y = &b->blocks[i];
        if (x->address != y->address || x->size != y->size || x->state != y->state || x->context != y->context ||
            x->requested != y->requested || x->flags != y->flags)
            fail_msg("block %zu at %llx: %llu %u %u %llu %u / %llu %u %u %llu %u", i, (unsigned long long)x->address,
                     (unsigned long long)x->size, x->state, x->context, (unsigned long long)x->requested, x->flags,
                     (unsigned long long)y->size, y->state, y->context, (unsigned long long)y->requested, y->flags);
    }
}

/* By the index, with checkpoints on both sides, only on one, on a border, and without any. */
static void a_part_is_the_same_as_that_part_of_the_whole(void **state)
{
    (void)state;
    const uint64_t ranges[][2] = {{0, 10},           {5, 70000},       {270000, 280000}, {262144, 262144},
                                  {262143, 262145},  {0, 262144},      {600000, 600001}, {599999, 700000},
                                  {300000, 400000},  {600000, 0},      {999999, 1000000}, {7, 7}};
    struct snapshot *whole = sample_trace(700000, 3);
    size_t length;
    unsigned char *bytes = sample_bin(whole, &length);
    for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
        uint64_t first = ranges[r][0], last = ranges[r][1];
        struct format_options options = {.first_entry = first, .last_entry = last};
        struct snapshot *part = read_good(bytes, length, &options);
        last = !last || last > 700000 ? 700000 : last;
        first = first > last ? last : first;
        assert_int_equal(part->entries.count, last - first);
        assert_int_equal(part->first_entry, first);
        for (uint64_t i = first; i < last; i++) {
            struct entry x = snapshot_entry(whole, i), y = snapshot_entry(part, i - first);
            assert_true(x.action == y.action && x.address == y.address && x.size == y.size && x.time == y.time &&
                        x.context == y.context);
        }
        struct state expected = {0};
        assert_int_equal(state_at(whole, last, &expected, NULL), 0);
        assert_same_state(&expected, &part->end);
        state_free(&expected);
        snapshot_free(part);
    }
    free(bytes);
    snapshot_free(whole);
}

static void a_part_of_a_stream_is_the_same(void **state)
{
    (void)state;
    struct snapshot *whole = sample_trace(150000, 4);
    size_t length;
    unsigned char *bytes = sample_bin(whole, &length);
    uLongf packed_length = compressBound(length) + 64;
    unsigned char *packed = malloc(packed_length);
    z_stream stream = {.next_in = bytes, .avail_in = (uInt)length, .next_out = packed, .avail_out = (uInt)packed_length};
    deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    struct format_options options = {.first_entry = 100, .last_entry = 70000};
    struct snapshot *a = read_good(bytes, length, &options), *b = read_good(packed, stream.total_out, &options);
    deflateEnd(&stream);
    size_t a_length, b_length;
    unsigned char *a_bytes = sample_bin(a, &a_length), *b_bytes = sample_bin(b, &b_length);
    assert_int_equal(a_length, b_length);
    assert_memory_equal(a_bytes, b_bytes, a_length);
    free(a_bytes);
    free(b_bytes);
    free(packed);
    free(bytes);
    snapshot_free(a);
    snapshot_free(b);
    snapshot_free(whole);
}

static void without_traces_the_segments_stay(void **state)
{
    (void)state;
    struct snapshot *whole = sample_trace(70000, 5);
    size_t length;
    unsigned char *bytes = sample_bin(whole, &length);
    struct format_options options = {.skip_traces = true};
    struct snapshot *part = read_good(bytes, length, &options);
    assert_int_equal(part->entries.count, 0);
    assert_same_state(&whole->end, &part->end);
    free(bytes);
    snapshot_free(part);
    snapshot_free(whole);
}

static void put_u32(unsigned char *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static void sign_header(unsigned char *bytes)
{
    put_u32(bytes + 60, (uint32_t)crc32(crc32(0, NULL, 0), bytes, 60));
}

static void newer_minor_versions_are_read_newer_major_ones_are_not(void **state)
{
    (void)state;
    struct snapshot *whole = sample_full(), *result = NULL;
    struct error err = {0};
    size_t length;
    unsigned char *bytes = sample_bin(whole, &length);
    bytes[10] = 9;
    sign_header(bytes);
    snapshot_free(read_good(bytes, length, NULL));
    bytes[8] = 2;
    sign_header(bytes);
    assert_int_equal(read_bytes(bytes, length, NULL, &result, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "version 2.9"));
    assert_null(result);
    bytes[10] = 0; /* and without a matching checksum it is named, too */
    assert_int_equal(read_bytes(bytes, length, NULL, &result, &err), STATUS_INPUT);
    assert_non_null(strstr(err.message, "version 2.0"));
    free(bytes);
    snapshot_free(whole);
}

/* The file with a section of a type of its own before the first one. */
static unsigned char *with_unknown_section(const unsigned char *bytes, size_t length, uint32_t flags, size_t *longer)
{
    unsigned char section[32 + 5] = {200, 0, 0, 0};
    put_u32(section + 4, flags);
    section[8] = section[16] = 5;
    memcpy(section + 32, "hello", 5);
    put_u32(section + 24, (uint32_t)crc32(crc32(0, NULL, 0), section + 32, 5));
    put_u32(section + 28, (uint32_t)crc32(crc32(0, NULL, 0), section, 28));
    *longer = length + sizeof(section);
    unsigned char *result = malloc(*longer);
    memcpy(result, bytes, 64);
    memcpy(result + 64, section, sizeof(section));
    memcpy(result + 64 + sizeof(section), bytes + 64, length - 64);
    uint64_t numbers[3]; /* file, index, entries, all below 2^32 here */
    for (int i = 0; i < 3; i++)
        numbers[i] = (uint64_t)bytes[16 + 8 * i] | (uint64_t)bytes[17 + 8 * i] << 8 | (uint64_t)bytes[18 + 8 * i] << 16;
    put_u32(result + 16, (uint32_t)(numbers[0] + sizeof(section)));
    put_u32(result + 24, (uint32_t)(numbers[1] + sizeof(section)));
    uint32_t raw = (uint32_t)bytes[40] | (uint32_t)bytes[41] << 8 | (uint32_t)bytes[42] << 16;
    put_u32(result + 40, raw + 5);
    put_u32(result + 48, (uint32_t)bytes[48] + 1);
    sign_header(result);
    return result;
}

static void unknown_sections_are_skipped_unless_they_must_be_understood(void **state)
{
    (void)state;
    struct snapshot *whole = sample_full(), *result = NULL;
    struct error err = {0};
    size_t length, longer;
    unsigned char *bytes = sample_bin(whole, &length);
    unsigned char *skipped = with_unknown_section(bytes, length, 0, &longer);
    snapshot_free(read_good(skipped, longer, NULL));
    unsigned char *required = with_unknown_section(bytes, length, BIN_REQUIRED, &longer);
    assert_int_equal(read_bytes(required, longer, NULL, &result, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "section type 200"));
    skipped[64 + 32] ^= 1; /* what is skipped is still checked */
    assert_int_equal(read_bytes(skipped, longer, NULL, &result, &err), STATUS_INPUT);
    free(bytes);
    free(skipped);
    free(required);
    snapshot_free(whole);
}

static void the_limit_on_decoded_bytes_holds(void **state)
{
    (void)state;
    struct snapshot *whole = sample_trace(200000, 6), *result = NULL;
    struct error err = {0};
    size_t length;
    unsigned char *bytes = sample_bin(whole, &length);
    struct input *input;
    assert_int_equal(input_from_memory(bytes, length, 2000000, &input, NULL), 0);
    assert_int_equal(bin_read(input, NULL, &result, &err), STATUS_NO_MEMORY);
    assert_non_null(strstr(err.message, "--max-input"));
    assert_null(result);
    input_close(input);
    free(bytes);
    snapshot_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_survives_byte_for_byte),
        cmocka_unit_test(every_field_survives),
        cmocka_unit_test(values_keep_content_sharing_and_cycles),
        cmocka_unit_test(empty_and_long_traces_survive),
        cmocka_unit_test(a_part_is_the_same_as_that_part_of_the_whole),
        cmocka_unit_test(a_part_of_a_stream_is_the_same),
        cmocka_unit_test(without_traces_the_segments_stay),
        cmocka_unit_test(newer_minor_versions_are_read_newer_major_ones_are_not),
        cmocka_unit_test(unknown_sections_are_skipped_unless_they_must_be_understood),
        cmocka_unit_test(the_limit_on_decoded_bytes_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
