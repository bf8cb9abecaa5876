/* Reading a stranger's file: plain, packed, from a pipe, and everything that can be wrong with one. */
#include "base/input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

enum { CONTENT = 700001 }; /* more than two windows and no round number */

static char folder[] = "/tmp/cudamem-test-input-XXXXXX";
static unsigned char content[CONTENT];

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static const char *make_file(const char *name, const void *bytes, size_t length)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
    return path;
}

static unsigned char *pack(const void *bytes, size_t length, size_t *packed_length)
{
    z_stream stream = {0};
    unsigned char *packed = malloc(length + length / 100 + 4096);
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)(uintptr_t)bytes;
    stream.avail_in = (uInt)length;
    stream.next_out = packed;
    stream.avail_out = (uInt)(length + length / 100 + 4096);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *packed_length = stream.total_out;
    deflateEnd(&stream);
    return packed;
}

static int setup(void **unused)
{
    uint64_t x = 1;
    (void)unused;
    for (size_t i = 0; i < CONTENT; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        content[i] = (unsigned char)("abcdefgh"[x >> 61]);
    }
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **unused)
{
    char command[256];
    (void)unused;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

/* Walk the whole input by peeks of changing width; it must be `length` bytes of content, `times` times. */
static void assert_walks(struct input *input, size_t length, size_t times)
{
    struct error err;
    size_t done = 0, want = 1;
    for (;;) {
        const unsigned char *bytes;
        size_t available;
        assert_int_equal(input_peek(input, want, &bytes, &available, &err), STATUS_OK);
        if (!available)
            break;
        size_t left = length * times - done;
        assert_true(available >= (want < left ? want : left));
        size_t take = want < available ? want : available;
        assert_int_equal(input_offset(input), done);
        for (size_t i = 0; i < take; i++)
            if (bytes[i] != content[(done + i) % length])
                fail_msg("byte %zu differs", done + i);
        input_skip(input, take);
        done += take;
        want = want * 3 % 65537;
        want = want ? want : 1;
    }
    assert_int_equal(done, length * times);
}

static void plain_file_reads_as_it_is(void **unused)
{
    struct input *input;
    struct error err;
    (void)unused;
    assert_int_equal(input_open(make_file("plain", content, CONTENT), 0, &input, &err), STATUS_OK);
    assert_false(input_is_gzip(input));
    assert_true(input_is_seekable(input));
    assert_int_equal(input_size(input), CONTENT);
    assert_true(input_limit(input) > 1 << 20);
    assert_walks(input, CONTENT, 1);
    input_close(input);
}

static void gzip_file_is_unpacked(void **unused)
{
    struct input *input;
    struct error err;
    size_t length;
    unsigned char *packed = pack(content, CONTENT, &length);
    (void)unused;
    assert_int_equal(input_open(make_file("packed", packed, length), 0, &input, &err), STATUS_OK);
    assert_true(input_is_gzip(input));
    assert_false(input_is_seekable(input));
    assert_walks(input, CONTENT, 1);
    input_close(input);
    free(packed);
}

static void gzip_of_several_members_and_padding_is_unpacked(void **unused)
{
    struct input *input;
    struct error err;
    size_t length;
    unsigned char *packed = pack(content, CONTENT, &length);
    unsigned char *several = calloc(3, length + 100);
    (void)unused;
    for (size_t i = 0; i < 3; i++)
        memcpy(several + i * length, packed, length);
    assert_int_equal(input_open(make_file("several", several, 3 * length + 50), 0, &input, &err), STATUS_OK);
    assert_walks(input, CONTENT, 3);
    input_close(input);
    several[3 * length + 10] = 'x';
    assert_int_equal(input_from_memory(several, 3 * length + 50, 0, &input, &err), STATUS_OK);
    assert_int_equal(input_check_end(input, &err), STATUS_INPUT);
    assert_non_null(strstr(err.message, "something else follows"));
    input_close(input);
    free(several);
    free(packed);
}

static void memory_reads_like_a_file(void **unused)
{
    struct input *input;
    struct error err;
    unsigned char some[16];
    size_t length;
    unsigned char *packed = pack(content, CONTENT, &length);
    (void)unused;
    assert_int_equal(input_from_memory(content, CONTENT, 0, &input, &err), STATUS_OK);
    assert_true(input_is_seekable(input));
    assert_walks(input, CONTENT, 1);
    assert_int_equal(input_read_at(input, 100, some, 16, &err), STATUS_OK);
    assert_memory_equal(some, content + 100, 16);
    input_close(input);
    assert_int_equal(input_from_memory(packed, length, 0, &input, &err), STATUS_OK);
    assert_walks(input, CONTENT, 1);
    input_close(input);
    assert_int_equal(input_from_memory("", 0, 0, &input, &err), STATUS_OK);
    assert_walks(input, 1, 0);
    input_close(input);
    free(packed);
}

/* Point standard input at a pipe or a file for one opening. */
static void with_stdin(int fd, size_t length, size_t times)
{
    struct input *input;
    struct error err;
    int saved = dup(0);
    dup2(fd, 0);
    close(fd);
    assert_int_equal(input_open("-", 0, &input, &err), STATUS_OK);
    assert_walks(input, length, times);
    input_close(input);
    dup2(saved, 0);
    close(saved);
}

static void standard_input_reads_pipes_and_files(void **unused)
{
    int ends[2];
    size_t length;
    unsigned char *packed = pack(content, 5000, &length);
    (void)unused;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], content, 5000), 5000);
    close(ends[1]);
    with_stdin(ends[0], 5000, 1);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], packed, length), length);
    close(ends[1]);
    with_stdin(ends[0], 5000, 1);
    FILE *file = fopen(make_file("stdin", content, CONTENT), "rb");
    with_stdin(dup(fileno(file)), CONTENT, 1);
    fclose(file);
    free(packed);
}

static void reads_take_exactly_what_is_asked(void **unused)
{
    struct input *input;
    struct error err;
    unsigned char *all = malloc(CONTENT);
    size_t length;
    unsigned char *packed = pack(content, CONTENT, &length);
    const char *const paths[] = {strdup(make_file("plain", content, CONTENT)), strdup(make_file("gz", packed, length))};
    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(input_open(paths[i], 0, &input, &err), STATUS_OK);
        assert_int_equal(input_read(input, all, 10, "the head", &err), STATUS_OK);
        assert_int_equal(input_read(input, all + 10, 600000, "the body", &err), STATUS_OK);
        assert_int_equal(input_offset(input), 600010);
        assert_memory_equal(all, content, 600010);
        assert_int_equal(input_read(input, all, CONTENT, "the tail", &err), STATUS_INPUT);
        assert_true(err.has_offset);
        assert_int_equal(err.offset, CONTENT);
        assert_non_null(strstr(err.message, "the tail"));
        input_close(input);
        unsigned char *everything;
        assert_int_equal(input_open(paths[i], 0, &input, &err), STATUS_OK);
        assert_int_equal(input_read(input, all, 1, "a byte", &err), STATUS_OK);
        assert_int_equal(input_read_all(input, &everything, &length, &err), STATUS_OK);
        assert_int_equal(length, CONTENT - 1);
        assert_memory_equal(everything, content + 1, CONTENT - 1);
        free(everything);
        input_close(input);
        free((void *)(uintptr_t)paths[i]);
    }
    free(all);
    free(packed);
}

static void random_access_stays_inside_the_file(void **unused)
{
    struct input *input;
    struct error err;
    unsigned char some[64];
    const unsigned char *bytes;
    size_t available;
    (void)unused;
    assert_int_equal(input_open(make_file("plain", content, CONTENT), 0, &input, &err), STATUS_OK);
    assert_int_equal(input_read_at(input, CONTENT - 64, some, 64, &err), STATUS_OK);
    assert_memory_equal(some, content + CONTENT - 64, 64);
    assert_int_equal(input_read_at(input, CONTENT - 63, some, 64, &err), STATUS_INPUT);
    assert_int_equal(input_read_at(input, UINT64_MAX - 10, some, 64, &err), STATUS_INPUT);
    assert_int_equal(input_read_at(input, CONTENT, some, 0, &err), STATUS_OK);
    assert_int_equal(input_peek(input, 4, &bytes, &available, &err), STATUS_OK);
    assert_memory_equal(bytes, content, 4);
    assert_int_equal(truncate(in_folder("plain"), 1000), 0);
    assert_int_equal(input_read_at(input, 500000, some, 64, &err), STATUS_INPUT);
    assert_non_null(strstr(err.message, "shorter"));
    input_close(input);
}

static void what_is_no_readable_file_is_named(void **unused)
{
    struct input *input = (void *)1;
    struct error err;
    (void)unused;
    assert_int_equal(input_open(in_folder("missing"), 0, &input, &err), STATUS_INPUT);
    assert_null(input);
    assert_string_equal(err.message, "no such file");
    assert_int_equal(input_open(folder, 0, &input, &err), STATUS_INPUT);
    assert_null(input);
    assert_non_null(strstr(err.message, "folder"));
    assert_int_equal(input_open("/proc/self/mem", 0, &input, &err), STATUS_INPUT); /* read() itself fails */
    assert_non_null(strstr(err.message, "cannot be read"));
    const char *path = make_file("secret", content, 10);
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() != 0) {
        assert_int_equal(input_open(path, 0, &input, &err), STATUS_INPUT);
        assert_non_null(strstr(err.message, "permission denied"));
    }
}

static int decode_all(const void *bytes, size_t length, uint64_t limit, struct error *err)
{
    struct input *input;
    unsigned char *all;
    size_t decoded;
    int status = input_from_memory(bytes, length, limit, &input, err);
    if (status)
        return status;
    status = input_read_all(input, &all, &decoded, err);
    if (!status)
        free(all);
    input_close(input);
    return status;
}

static void gzip_cut_at_any_byte_is_refused(void **unused)
{
    struct error err;
    size_t length;
    unsigned char *packed = pack(content, 3000, &length);
    (void)unused;
    assert_int_equal(decode_all(packed, length, 0, &err), STATUS_OK);
    for (size_t cut = 2; cut < length; cut++) {
        if (decode_all(packed, cut, 0, &err) != STATUS_INPUT)
            fail_msg("cut at %zu of %zu was accepted", cut, length);
        assert_true(err.has_offset);
        assert_non_null(strstr(err.message, "cut short"));
    }
    free(packed);
}

/* Another bit pattern may stand for the very same bytes (two distances to equal text); then nothing was damaged. */
static void gzip_with_any_bit_of_its_data_flipped_is_refused_or_the_same(void **unused)
{
    enum { UNCHECKED = 10, SHOWN = 3000 }; /* nothing in the format protects the header's time stamp and hints */
    struct error err;
    size_t same = 0;
    size_t length;
    unsigned char *packed = pack(content, 3000, &length);
    (void)unused;
    for (size_t bit = UNCHECKED * 8; bit < length * 8; bit++) {
        packed[bit / 8] ^= (unsigned char)(1u << bit % 8);
        struct input *input;
        unsigned char *all;
        size_t decoded;
        int status = input_from_memory(packed, length, 0, &input, &err);
        if (!status)
            status = input_read_all(input, &all, &decoded, &err);
        if (!status) {
            assert_int_equal(decoded, SHOWN);
            assert_memory_equal(all, content, SHOWN);
            free(all);
            same++;
        } else {
            assert_int_equal(status, STATUS_INPUT);
        }
        input_close(input);
        packed[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(same < 20);
    free(packed);
}

static void checksum_is_compared_even_when_the_data_was_enough(void **unused)
{
    struct input *input;
    struct error err;
    size_t length;
    unsigned char *packed = pack(content, CONTENT, &length), some[100];
    (void)unused;
    packed[length - 6] ^= 1;
    assert_int_equal(input_from_memory(packed, length, 0, &input, &err), STATUS_OK);
    assert_int_equal(input_read(input, some, 100, "the head", &err), STATUS_OK);
    assert_int_equal(input_check_end(input, &err), STATUS_INPUT);
    assert_non_null(strstr(err.message, "damaged gzip data"));
    assert_int_equal(input_check_end(input, &err), STATUS_INPUT); /* and again */
    input_close(input);
    free(packed);
}

static void limit_ends_a_compression_bomb(void **unused)
{
    enum { HUGE_LENGTH = 64 << 20, LIMIT = 1 << 20 };
    struct error err;
    size_t length, layered;
    unsigned char *zeros = calloc(1, HUGE_LENGTH);
    unsigned char *packed = pack(zeros, HUGE_LENGTH, &length), *twice;
    (void)unused;
    free(zeros);
    assert_true(length < 100000);
    assert_int_equal(decode_all(packed, length, LIMIT, &err), STATUS_NO_MEMORY);
    assert_non_null(strstr(err.message, "--max-input"));
    assert_in_range(err.offset, LIMIT, LIMIT + (1 << 20));
    assert_int_equal(decode_all(packed, length, HUGE_LENGTH, &err), STATUS_OK);
    twice = pack(packed, length, &layered); /* unpacked once only: what is inside is data */
    assert_int_equal(decode_all(twice, layered, LIMIT, &err), STATUS_OK);
    assert_int_equal(decode_all(content, 1000, 999, &err), STATUS_NO_MEMORY);
    assert_int_equal(decode_all(content, 1000, 1000, &err), STATUS_OK);
    free(twice);
    free(packed);
}

static void short_files_are_short_not_wrong(void **unused)
{
    struct input *input;
    struct error err;
    const unsigned char *bytes;
    size_t available;
    (void)unused;
    assert_int_equal(input_open(make_file("empty", "", 0), 0, &input, &err), STATUS_OK);
    assert_int_equal(input_peek(input, 8, &bytes, &available, &err), STATUS_OK);
    assert_int_equal(available, 0);
    input_close(input);
    assert_int_equal(input_open(make_file("one", "\x1f", 1), 0, &input, &err), STATUS_OK);
    assert_int_equal(input_peek(input, 8, &bytes, &available, &err), STATUS_OK);
    assert_int_equal(available, 1);
    assert_int_equal(bytes[0], 0x1f);
    input_close(input);
    assert_int_equal(decode_all("\x1f\x8b", 2, 0, &err), STATUS_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_file_reads_as_it_is),
        cmocka_unit_test(gzip_file_is_unpacked),
        cmocka_unit_test(gzip_of_several_members_and_padding_is_unpacked),
        cmocka_unit_test(memory_reads_like_a_file),
        cmocka_unit_test(standard_input_reads_pipes_and_files),
        cmocka_unit_test(reads_take_exactly_what_is_asked),
        cmocka_unit_test(random_access_stays_inside_the_file),
        cmocka_unit_test(what_is_no_readable_file_is_named),
        cmocka_unit_test(gzip_cut_at_any_byte_is_refused),
        cmocka_unit_test(gzip_with_any_bit_of_its_data_flipped_is_refused_or_the_same),
        cmocka_unit_test(checksum_is_compared_even_when_the_data_was_enough),
        cmocka_unit_test(limit_ends_a_compression_bomb),
        cmocka_unit_test(short_files_are_short_not_wrong),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
