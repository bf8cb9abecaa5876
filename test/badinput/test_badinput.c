/*
 * Damaged files, exhaustively and in one process: cut at every byte, every bit turned, lengths of 2^63, and sections
 * that are damaged under right checksums.  Meant to be run under the sanitizers, too.
 */
#include "bin_sections.h"
#include "sample.h"

#include "format/bin_layout.h"
#include "format/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { SLOWER = 3 }; /* each case costs ten times as much */
#else
enum { SLOWER = 1 };
#endif

/* Every n-th case of the largest tests; every one with CUDAMEM_TEST_FULL. */
static size_t stride(size_t usual)
{
    return getenv("CUDAMEM_TEST_FULL") ? 1 : usual * SLOWER;
}

/* Read; what is read must hold together and survive being written again. */
static bool is_read(const unsigned char *bytes, size_t length, const struct format_options *options)
{
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    int status = format_read_memory(bytes, length, options, &snapshot, &err);
    if (status) {
        assert_null(snapshot);
        assert_true(err.message[0] != '\0' && !strchr(err.message, '\n'));
        return false;
    }
    if (!snapshot_is_valid(snapshot, &err))
        fail_msg("read although it does not hold together: %s", err.message);
    struct output *output;
    unsigned char *again;
    size_t size;
    const char *const names[] = {"bin", "pickle", "json", "csv"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(output_to_memory(&again, &size, &output, NULL), 0);
        if (format_write(snapshot, names[i], NULL, output, &err)) {
            output_abandon(output);
        } else {
            assert_int_equal(output_commit(output, NULL), 0);
            free(again);
        }
    }
    snapshot_free(snapshot);
    return true;
}

/* The smallest file that has everything. */
static unsigned char *small_file(const char *format, size_t *length)
{
    struct snapshot *snapshot = sample_full();
    struct output *output;
    unsigned char *bytes = NULL;
    if (strcmp(format, "pickle") == 0)
        snapshot->has_raw = false;
    assert_int_equal(output_to_memory(&bytes, length, &output, NULL), 0);
    assert_int_equal(format_write(snapshot, format, NULL, output, NULL), 0);
    assert_int_equal(output_commit(output, NULL), 0);
    snapshot_free(snapshot);
    return bytes;
}

static unsigned char *gzip(const unsigned char *bytes, size_t length, size_t *packed_length)
{
    z_stream stream = {0};
    unsigned char *packed = malloc(length + 1000);
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)length;
    stream.next_out = packed;
    stream.avail_out = (uInt)(length + 1000);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *packed_length = stream.total_out;
    deflateEnd(&stream);
    return packed;
}

/* Each prefix in memory of just its size, so that a byte read too far is seen. */
static void refuse_every_prefix(const unsigned char *bytes, size_t length)
{
    for (size_t cut = 0; cut < length; cut++) {
        unsigned char *copy = malloc(cut ? cut : 1);
        memcpy(copy, bytes, cut);
        if (is_read(copy, cut, NULL))
            fail_msg("read although only %zu of %zu bytes are there", cut, length);
        free(copy);
    }
}

static void a_snapshot_bin_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = small_file("bin", &length);
    assert_true(is_read(bytes, length, NULL));
    refuse_every_prefix(bytes, length);
    free(bytes);
}

static void a_pickle_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    size_t length, packed_length;
    unsigned char *bytes = small_file("pickle", &length);
    assert_true(is_read(bytes, length, NULL));
    refuse_every_prefix(bytes, length);
    unsigned char *packed = gzip(bytes, length, &packed_length);
    assert_true(is_read(packed, packed_length, NULL));
    refuse_every_prefix(packed, packed_length);
    free(packed);
    free(bytes);
}

static void a_packed_snapshot_bin_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    size_t length, packed_length;
    unsigned char *bytes = small_file("bin", &length), *packed = gzip(bytes, length, &packed_length);
    assert_true(is_read(packed, packed_length, NULL));
    refuse_every_prefix(packed, packed_length);
    free(packed);
    free(bytes);
}

static void any_bit_of_a_snapshot_bin_turned_is_refused(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = small_file("bin", &length);
    for (size_t bit = 0; bit < 8 * length; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (is_read(bytes, length, NULL))
            fail_msg("read although bit %zu of byte %zu is turned", bit % 8, bit / 8);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(bytes);
}

/* Some bits of gzip say nothing: the time in its header, padding before stored blocks.  Then the same must come out. */
static void any_bit_of_a_gzip_turned_is_refused_or_changes_nothing(void **state)
{
    (void)state;
    const char *const names[] = {"bin", "pickle"};
    for (int i = 0; i < 2; i++) {
        size_t length, packed_length, same = 0, size;
        unsigned char *bytes = small_file(names[i], &length), *packed = gzip(bytes, length, &packed_length);
        struct snapshot *snapshot = NULL;
        assert_int_equal(format_read_memory(bytes, length, NULL, &snapshot, NULL), 0);
        unsigned char *expected = sample_bin(snapshot, &size);
        snapshot_free(snapshot);
        for (size_t bit = 0; bit < 8 * packed_length; bit += stride(1)) {
            packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (format_read_memory(packed, packed_length, NULL, &snapshot, NULL) == 0) {
                size_t got_size;
                unsigned char *got = sample_bin(snapshot, &got_size);
                snapshot_free(snapshot);
                if (got_size != size || memcmp(got, expected, size) != 0)
                    fail_msg("%s: other data are read with bit %zu of byte %zu turned", names[i], bit % 8, bit / 8);
                free(got);
                same++;
            }
            packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        assert_in_range(same, 48 / stride(1), 80); /* 48 bits of time, level and system */
        free(expected);
        free(packed);
        free(bytes);
    }
}

static void any_bit_of_a_pickle_turned_is_refused_or_valid(void **state)
{
    (void)state;
    size_t length, read = 0;
    unsigned char *bytes = small_file("pickle", &length);
    for (size_t bit = 0; bit < 8 * length; bit += stride(3)) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        read += is_read(bytes, length, NULL);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_in_range(read, 1, 8 * length - 1); /* a letter of a name may be another letter */
    free(bytes);
}

/* Checksums are no defence against somebody who computes them. */
static void any_bit_inside_a_section_turned_is_refused_or_valid(void **state)
{
    (void)state;
    size_t length, read = 0, refused = 0;
    unsigned char *bytes = small_file("bin", &length);
    struct bin_parts parts = bin_take_apart(bytes, length);
    struct format_options part = {.first_entry = 2, .last_entry = 6};
    for (size_t p = 0; p < parts.count; p++)
        for (size_t bit = p % 3; bit < 8 * parts.parts[p].length; bit += stride(3)) {
            size_t again_length;
            parts.parts[p].raw[bit / 8] ^= (unsigned char)(1 << bit % 8);
            unsigned char *again = bin_put_together(&parts, &again_length);
            bool good = is_read(again, again_length, NULL);
            read += good;
            refused += !good;
            if (bit % 5 == 0)
                is_read(again, again_length, &part);
            free(again);
            parts.parts[p].raw[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    assert_true(read > 30 && refused > 100);
    bin_parts_free(&parts);
    free(bytes);
}

static void sections_that_are_missing_doubled_or_swapped_are_refused_or_valid(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = small_file("bin", &length);
    struct bin_parts parts = bin_take_apart(bytes, length);
    struct bin_part *copy = calloc(parts.count + 1, sizeof(*copy));
    for (size_t p = 0; p < parts.count; p++)
        for (size_t q = 0; q < parts.count; q++) {
            struct bin_parts changed = {copy, parts.count, parts.entries};
            size_t changed_length;
            memcpy(copy, parts.parts, parts.count * sizeof(*copy));
            if (p == q) { /* missing */
                memmove(copy + p, copy + p + 1, (parts.count - p - 1) * sizeof(*copy));
                changed.count--;
            } else if (p < q) { /* swapped */
                copy[p] = parts.parts[q];
                copy[q] = parts.parts[p];
            } else { /* one of them twice */
                copy[q] = parts.parts[p];
            }
            unsigned char *again = bin_put_together(&changed, &changed_length);
            if (is_read(again, changed_length, NULL) && p == q)
                assert_true(parts.parts[p].type != BIN_INFO && parts.parts[p].type != BIN_STRINGS &&
                            parts.parts[p].type != BIN_ENTRIES && parts.parts[p].type != BIN_INDEX);
            free(again);
        }
    free(copy);
    bin_parts_free(&parts);
    free(bytes);
}

static void put_u64(unsigned char *at, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static void sign(unsigned char *bytes, size_t length, size_t at)
{
    uint32_t sum = (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)length);
    for (int i = 0; i < 4; i++)
        bytes[at + (size_t)i] = (unsigned char)(sum >> (8 * i));
}

static void lengths_of_any_size_are_refused(void **state)
{
    (void)state;
    const uint64_t lengths[] = {0, 1, UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(1) << 62, UINT64_C(1) << 63,
                                (UINT64_C(1) << 63) - 1, UINT64_MAX - 31, UINT64_MAX};
    size_t length;
    unsigned char *bytes = small_file("bin", &length), *copy = malloc(length);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (size_t at = 16; at < 48; at += 8) {
            memcpy(copy, bytes, length);
            put_u64(copy + at, lengths[i]);
            sign(copy, 60, 60);
            assert_false(is_read(copy, length, NULL));
        }
        for (size_t at = 8; at < 24; at += 8) {
            memcpy(copy, bytes, length);
            put_u64(copy + 64 + at, lengths[i]);
            sign(copy + 64, 28, 28);
            assert_false(is_read(copy, length, NULL));
        }
    }
    free(copy);
    free(bytes);
}

static void refuse_with(const char *bytes, size_t length, const char *word)
{
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    int status = format_read_memory(bytes, length, NULL, &snapshot, &err);
    if (!status || !strstr(err.message, word))
        fail_msg("'%.20s' gives %d '%s', not '%s'", bytes, status, err.message, word);
}

static void other_files_are_named_for_what_they_look_like(void **state)
{
    (void)state;
    refuse_with("", 0, "empty");
    refuse_with("{\"a\": 1}", 8, "JSON");
    refuse_with("  [1, 2]\n", 9, "JSON");
    refuse_with("<!DOCTYPE html><html>", 21, "HTML");
    refuse_with("<svg xmlns=", 11, "SVG");
    refuse_with("PK\3\4\0\0\0\0", 8, "zip");
    refuse_with("\x7f" "ELF\2\1\1\0", 8, "program");
    refuse_with("hello, world\n", 13, "text");
    refuse_with("\0\0\0\0\0\0\0\0", 8, "zeroes");
    refuse_with("\x89" "CUME", 5, "cut short");
    refuse_with("\x89" "PNG\r\n\x1a\n", 8, "binary");
    refuse_with("\x28\xb5\x2f\xfd\0\0", 6, "gzip");
    refuse_with("version https://git-lfs.github.com/spec/v1\n", 43, "LFS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_bin_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_packed_snapshot_bin_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_pickle_cut_at_any_byte_is_refused),
        cmocka_unit_test(any_bit_of_a_snapshot_bin_turned_is_refused),
        cmocka_unit_test(any_bit_of_a_gzip_turned_is_refused_or_changes_nothing),
        cmocka_unit_test(any_bit_of_a_pickle_turned_is_refused_or_valid),
        cmocka_unit_test(any_bit_inside_a_section_turned_is_refused_or_valid),
        cmocka_unit_test(sections_that_are_missing_doubled_or_swapped_are_refused_or_valid),
        cmocka_unit_test(lengths_of_any_size_are_refused),
        cmocka_unit_test(other_files_are_named_for_what_they_look_like),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
