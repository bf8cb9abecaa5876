/* RMM's logs: every notation of a field, every refusal with its line, the file's order, and what lives at the end. */
#include "base/input.h"
#include "format/format.h"
#include "format/rmm_read.h"
#include "format/rmm_row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"
#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)

static int read_text(const char *text, uint16_t device, struct snapshot **result, struct error *err)
{
    struct input *input;
    assert_int_equal(input_from_memory(text, strlen(text), 0, &input, err), 0);
    int status = rmm_read(input, device, result, err);
    input_close(input);
    assert_true(status ? *result == NULL && err->message[0] : snapshot_is_valid(*result, err));
    return status;
}

static struct snapshot *snapshot_of(const char *text)
{
    struct snapshot *snapshot;
    struct error err = {0};
    if (read_text(text, 0, &snapshot, &err))
        fail_msg("%s", err.message);
    assert_int_equal(snapshot->source, SOURCE_RMM);
    return snapshot;
}

static int64_t stat_of(const struct snapshot *snapshot, const char *name)
{
    const struct memory_stats_key *keys = memory_stats_keys();
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return memory_stats_value(&snapshot->devices[0].stats, &keys[i]);
    fail_msg("there is no %s", name);
    return 0;
}

static bool is_log(const char *text)
{
    return rmm_is_log((const unsigned char *)text, strlen(text));
}

static void a_log_is_told_by_its_header(void **unused)
{
    (void)unused;
    assert_true(is_log(HEADER));
    assert_true(is_log("Thread,Time,Action,Pointer,Size,Stream"));
    assert_true(is_log("\xef\xbb\xbf" HEADER));
    assert_true(is_log("Time,Action,Pointer,Size,Stream\r\n"));
    assert_true(is_log("\"Size\", \"Pointer\" ,Action\n1,2\n"));
    assert_false(is_log(""));
    assert_false(is_log("\n" HEADER));
    assert_false(is_log("Thread,Time,Action,Pointer,Bytes,Stream\n"));
    assert_false(is_log("Thread,Time,Action,Pointer,Size,Size\n"));
    assert_false(is_log("Thread Time Action Pointer Size Stream\n"));
    assert_false(is_log("entry,process,device,action,time_us,address,size\n"));
    assert_false(is_log("the words Action,Pointer,Size in a text\n"));
}

static void other_text_stays_text(void **unused)
{
    static const char text[] = "Name,Action\nx,allocate\n";
    struct snapshot *snapshot;
    struct error err = {0};
    (void)unused;
    assert_int_equal(format_read_memory(text, sizeof(text) - 1, NULL, &snapshot, &err), STATUS_INPUT);
    assert_non_null(strstr(err.message, "it looks like text"));
    assert_non_null(strstr(err.message, "an RMM log"));
    assert_int_equal(read_text(text, 0, &snapshot, &err), STATUS_INPUT);
    assert_non_null(strstr(err.message, "line 1: no header"));
}

static void the_door_of_all_formats_opens_it(void **unused)
{
    static const char text[] = HEADER "1,00:00:01.5,allocate,0x100,7,0x0\n1,00:00:02.5,free,0x100,7,0x0\n";
    struct format_options options = {.last_entry = 1};
    struct snapshot *snapshot;
    (void)unused;
    assert_int_equal(format_read_memory(text, sizeof(text) - 1, NULL, &snapshot, NULL), 0);
    assert_int_equal(snapshot->entries.count, 2);
    snapshot_free(snapshot);
    assert_int_equal(format_read_memory(text, sizeof(text) - 1, &options, &snapshot, NULL), 0);
    assert_int_equal(snapshot->entries.count, 1);
    assert_int_equal(snapshot->end.block_count, 1);
    snapshot_free(snapshot);
    assert_null(format_by_name("rmm")->write);
}

static void rows_become_entries_in_the_order_of_the_file(void **unused)
{
    struct snapshot *s = snapshot_of(HEADER "1,10:00:00.000005,allocate,0x7000,512,0x0\n"
                                            "2,10:00:00.000003,free,0x7000,512,0x2\n"
                                            "1,10:00:00.000006,allocate,0x7000,256,0x1\n"
                                            "2,10:00:00.000007,allocate failure,0x0,99999,0x2\n");
    static const enum action actions[] = {ACTION_SEGMENT_ALLOC, ACTION_SEGMENT_FREE, ACTION_SEGMENT_ALLOC, ACTION_OOM};
    static const uint64_t sizes[] = {512, 512, 256, 99999}, addresses[] = {0x7000, 0x7000, 0x7000, 0};
    static const uint32_t threads[] = {1, 2, 1, 2};
    static const int64_t streams[] = {0, 2, 1, 2}, times[] = {5, 5, 6, 7};
    (void)unused;
    assert_int_equal(s->entries.count, 4);
    for (size_t i = 0; i < 4; i++) {
        struct entry entry = snapshot_entry(s, i);
        assert_int_equal(entry.action, actions[i]);
        assert_int_equal(entry.size, sizes[i]);
        assert_int_equal(entry.address, addresses[i]);
        assert_int_equal(entry.thread, threads[i]);
        assert_int_equal(entry.stream, streams[i]);
        assert_int_equal(entry.time, 10 * HOUR + times[i]);
        assert_int_equal(entry.flags, 0);
        assert_int_equal(entry.context, CONTEXT_NONE);
    }
    assert_true(s->processes[0].implied_blocks);
    assert_false(s->processes[0].incomplete);
    assert_int_equal(stat_of(s, "num_ooms"), 1);
    snapshot_free(s);
}

static int64_t time_after(const char *before, const char *time)
{
    char text[300];
    snprintf(text, sizeof(text), HEADER "1,%s,allocate,0x100,1,0x0\n1,%s,allocate,0x200,1,0x0\n", before, time);
    struct snapshot *snapshot = snapshot_of(text);
    int64_t result = snapshot->entries.time[1];
    snapshot_free(snapshot);
    return result;
}

static void every_notation_of_time_is_read(void **unused)
{
    (void)unused;
    assert_int_equal(time_after("00:00:00.0", "01:02:03.000004"), HOUR + 123 * SECOND + 4);
    assert_int_equal(time_after("00:00:00:000000", "01:02:03:000004"), HOUR + 123 * SECOND + 4);
    assert_int_equal(time_after("00:00:00", "1:2:3"), HOUR + 123 * SECOND);
    assert_int_equal(time_after("00:00:00", "00:00:00.25"), SECOND / 4);
    assert_int_equal(time_after("00:00:00", "00:00:00.123456789"), 123456);
    assert_int_equal(time_after("1634567889.5", "1634567890.123456"), INT64_C(1634567890123456));
}

static void time_never_goes_backwards(void **unused)
{
    (void)unused;
    assert_int_equal(time_after("23:59:59.9", "00:00:00.1"), 24 * HOUR + SECOND / 10);
    assert_int_equal(time_after("20:00:00", "09:00:00"), 33 * HOUR);
    assert_int_equal(time_after("10:00:00.5", "10:00:00.4"), 10 * HOUR + SECOND / 2);
    assert_int_equal(time_after("02:59:00", "02:00:00"), 3 * HOUR - 60 * SECOND); /* a clock set back */
    assert_int_equal(time_after("1634567890.5", "1634567000.5"), INT64_C(1634567890500000));
    struct snapshot *s = snapshot_of(HEADER "1,23:59:59.9,free,0x1,1,0\n1,00:00:00.1,free,0x1,1,0\n"
                                            "1,23:59:59.95,free,0x1,1,0\n1,00:00:00.2,free,0x1,1,0\n"
                                            "1,23:00:00,free,0x1,1,0\n1,22:00:00,free,0x1,1,0\n");
    static const int64_t expected[] = {24 * HOUR - SECOND / 10, 24 * HOUR + SECOND / 10, 24 * HOUR + SECOND / 10,
                                       24 * HOUR + SECOND / 5};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(s->entries.time[i], expected[i]);
    for (size_t i = 1; i < s->entries.count; i++)
        assert_true(s->entries.time[i] >= s->entries.time[i - 1]);
    snapshot_free(s);
    s = snapshot_of(HEADER "1,23:00:00,free,0x1,1,0\n1,01:00:00,free,0x1,1,0\n1,20:00:00,free,0x1,1,0\n"
                           "1,02:00:00,free,0x1,1,0\n");
    assert_int_equal(s->entries.time[2], 44 * HOUR);
    assert_int_equal(s->entries.time[3], 50 * HOUR);
    snapshot_free(s);
}

static void every_notation_of_numbers_is_read(void **unused)
{
    struct snapshot *s = snapshot_of(HEADER "140573312345856,0:0:0,allocate,7F8A40000000,1,0\n"
                                            "0x1f,0:0:0,allocate,0X7f8a40000100,1,7f38001020\n"
                                            "1a2b,0:0:0,allocate,0x7f8a40000200,1,(nil)\n"
                                            "140573312345888,0:0:0,allocate,0x7f8a40000300,1,0x2\n"
                                            "140573312345856,0:0:0,free,7f8a40000000,1,0xff\n");
    static const uint32_t threads[] = {1, 0x1f, 0x1a2b, 2, 1};
    static const uint64_t addresses[] = {0x7f8a40000000, 0x7f8a40000100, 0x7f8a40000200, 0x7f8a40000300,
                                         0x7f8a40000000};
    static const int64_t streams[] = {0, 0x7f38001020, 0, 2, 0xff};
    (void)unused;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(s->entries.thread[i], threads[i]);
        assert_int_equal(s->entries.address[i], addresses[i]);
        assert_int_equal(s->streams[s->entries.stream[i]], streams[i]);
    }
    assert_int_equal(s->end.segment_count, 3);
    snapshot_free(s);
}

static void columns_are_found_by_their_names(void **unused)
{
    struct snapshot *s = snapshot_of("\xef\xbb\xbfStream,Note,\"Size\", Pointer,Time,Action\r\n"
                                     "0x3,x,\"64\", 0x100 ,\"00:00:01\",\"allocate\"\r\n\r\n"
                                     "0x3,,64,0x100,00:00:02,free\r\n");
    (void)unused;
    assert_int_equal(s->entries.count, 2);
    assert_int_equal(s->entries.size[0], 64);
    assert_int_equal(s->entries.address[0], 0x100);
    assert_int_equal(s->streams[s->entries.stream[0]], 3);
    assert_int_equal(s->entries.time[1], 2 * SECOND);
    assert_null(s->entries.thread);
    snapshot_free(s);
    s = snapshot_of("Action,Pointer,Size\nallocate,0x100,5\n");
    assert_int_equal(s->entries.flags[0], ENTRY_NO_TIME | ENTRY_STREAM_UNKNOWN);
    snapshot_free(s);
}

static void a_bad_row_is_named_by_its_line(void **unused)
{
    static const struct {
        const char *row, *message;
    } cases[] = {
        {"1,00:00:00,foo,0x100,1,0x0", "Action 'foo' is"},
        {"1,00:00:00,deallocate,0x100,1,0x0", "Action 'deallocate' is"},
        {"1,00:00:00,,0x100,1,0x0", "Action '' is"},
        {"1,00:00:00,allocate,0x100,1", "5 columns where the header names 6"},
        {"1,00:00:00,allocate,0x100,1,0x0,", "7 columns where the header names 6"},
        {"allocate", "1 column where the header names 6"},
        {"1,00:00:00,allocate,0x,1,0x0", "Pointer '0x' is"},
        {"1,00:00:00,allocate,nil,1,0x0", "Pointer 'nil' is"},
        {"1,00:00:00,allocate,,1,0x0", "Pointer '' is"},
        {"1,00:00:00,allocate,0x10000000000000000,1,0x0", "Pointer '0x10000000000000000' is"},
        {"1,00:00:00,allocate,0x100,18446744073709551616,0x0", "Size '18446744073709551616' is"},
        {"1,00:00:00,allocate,0x100,-1,0x0", "Size '-1' is"},
        {"1,00:00:00,allocate,0x100,1.5,0x0", "Size '1.5' is"},
        {"1,00:00:00,allocate,0x100,0x10,0x0", "Size '0x10' is"},
        {"1,00:00:00,allocate,0x100,,0x0", "Size '' is"},
        {"1,00:00:00,allocate,0x100,1,0x8000000000000000", "Stream '0x8000000000000000' is"},
        {"1,00:00:00,allocate,0x100,1,legacy", "Stream 'legacy' is"},
        {"main,00:00:00,allocate,0x100,1,0x0", "Thread 'main' is"},
        {"1,24:00:00,allocate,0x100,1,0x0", "Time '24:00:00' is"},
        {"1,00:60:00,allocate,0x100,1,0x0", "Time '00:60:00' is"},
        {"1,00:00:61,allocate,0x100,1,0x0", "Time '00:00:61' is"},
        {"1,00:00,allocate,0x100,1,0x0", "Time '00:00' is"},
        {"1,00:00:00.,allocate,0x100,1,0x0", "Time '00:00:00.' is"},
        {"1,00:00:00.1x,allocate,0x100,1,0x0", "Time '00:00:00.1x' is"},
        {"1,::,allocate,0x100,1,0x0", "Time '::' is"},
        {"1,,allocate,0x100,1,0x0", "Time '' is"},
        {"1,100000000001,allocate,0x100,1,0x0", "Time '100000000001' is"},
        {"1,00:00:00,allocate,0123456789012345678901234567890123456789x,1,0x0",
         "Pointer '0123456789012345678901234567890123456789...' is"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[700], expected[100];
        struct snapshot *snapshot;
        struct error err = {0};
        snprintf(text, sizeof(text), HEADER "1,00:00:00,allocate,0x200,1,0x0\n\n1,0:0:0,free,0x200,1,0x0\n \t\n\n%s\n",
                 cases[i].row);
        snprintf(expected, sizeof(expected), "line 7: %s", cases[i].message);
        assert_int_equal(read_text(text, 0, &snapshot, &err), STATUS_INPUT);
        if (strncmp(err.message, expected, strlen(expected)) != 0)
            fail_msg("'%s' instead of '%s'", err.message, expected);
    }
}

static void a_line_has_a_limit(void **unused)
{
    char text[RMM_LINE + 300];
    const char *row = "1,0:0:0,allocate,0x1,1,0x0";
    struct snapshot *snapshot;
    struct error err = {0};
    (void)unused;
    for (int over = 0; over < 2; over++) {
        int length = snprintf(text, sizeof(text), HEADER "%s%*s\n", row, RMM_LINE + over - (int)strlen(row), "");
        assert_true(length < (int)sizeof(text));
        assert_int_equal(read_text(text, 0, &snapshot, &err), over ? STATUS_INPUT : STATUS_OK);
        snapshot_free(snapshot);
    }
    assert_string_equal(err.message, "line 2: longer than 4096 bytes");
}

static void a_cut_last_row_is_left_out(void **unused)
{
    struct snapshot *s = snapshot_of(HEADER "1,0:0:0,allocate,0x100,1,0x0\n1,0:0:1,free,0x10");
    (void)unused;
    assert_int_equal(s->entries.count, 1);
    assert_int_equal(s->end.segment_count, 1);
    assert_true(s->processes[0].incomplete);
    assert_false(s->devices[0].stats_exact);
    snapshot_free(s);
    s = snapshot_of(HEADER "1,0:0:0,allocate,0x100,1,0x0\n1,0:0:1,free,0x100,1,0x0"); /* whole, without its end */
    assert_int_equal(s->entries.count, 2);
    assert_false(s->processes[0].incomplete);
    snapshot_free(s);
    struct error err = {0};
    assert_int_equal(read_text(HEADER "1,0:0:1,foo,0x10,1,0x0", 0, &s, &err), STATUS_INPUT);
}

static void the_null_pointer_is_nothing(void **unused)
{
    struct snapshot *s = snapshot_of(HEADER "1,0:0:0,allocate,(nil),0,0x0\n1,0:0:0,free,0x0,0,0x0\n"
                                            "1,0:0:0,allocate failure,(nil),5368709120,0x0\n"
                                            "1,0:0:0,allocate failure,0,1,0x0\n1,0:0:0,allocate failure,0x20,2,0x0\n");
    (void)unused;
    assert_int_equal(s->entries.count, 3);
    assert_int_equal(s->entries.action[0], ACTION_OOM);
    assert_int_equal(s->entries.size[0], UINT64_C(5368709120));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(s->entries.address[i], 0); /* what was free is not known */
    assert_int_equal(stat_of(s, "num_ooms"), 3);
    assert_int_equal(stat_of(s, "allocation.all.allocated"), 0);
    assert_false(s->processes[0].incomplete);
    snapshot_free(s);
}

static void what_contradicts_is_kept_and_told(void **unused)
{
    struct snapshot *s = snapshot_of(HEADER "1,0:0:0,free,0x900,77,0x0\n");
    (void)unused;
    assert_int_equal(s->entries.count, 1);
    assert_int_equal(s->entries.size[0], 77);
    assert_true(s->processes[0].incomplete);
    assert_false(s->devices[0].stats_exact);
    snapshot_free(s);

    s = snapshot_of(HEADER "1,0:0:0,allocate,0x900,77,0x0\n1,0:0:0,allocate,0x900,5,0x0\n");
    assert_true(s->processes[0].incomplete);
    assert_int_equal(s->end.segment_count, 1);
    assert_int_equal(s->end.segments[0].total_size, 5);
    assert_int_equal(stat_of(s, "allocated_bytes.all.current"), 5);
    snapshot_free(s);

    s = snapshot_of(HEADER "1,0:0:0,allocate,0x900,77,0x0\n1,0:0:0,free,0x900,99,0x0\n"); /* the allocation is right */
    assert_int_equal(s->entries.size[1], 77);
    assert_int_equal(stat_of(s, "allocated_bytes.all.current"), 0);
    snapshot_free(s);

    s = snapshot_of(HEADER "1,0:0:0,allocate,0xffffffffffffff00,257,0x0\n1,0:0:0,allocate,0x0,5,0x0\n"
                           "1,0:0:0,free,0xffffffffffffff00,257,0x0\n1,0:0:0,allocate,0xffffffffffffff00,255,0x0\n");
    static const uint8_t flags[] = {ENTRY_BAD, ENTRY_BAD, ENTRY_BAD, 0};
    assert_memory_equal(s->entries.flags, flags, 4);
    assert_int_equal(s->end.segment_count, 1);
    snapshot_free(s);

    s = snapshot_of(HEADER "1,0:0:0,allocate,0x1,9223372036854775807,0x0\n"
                           "1,0:0:0,allocate,0x2,9223372036854775807,0x0\n");
    assert_false(s->devices[0].has_stats); /* no sum of 64 bits */
    snapshot_free(s);
}

/* Five bytes and seven; the five go; one, one and one: at most 12 bytes and 4 allocations, 15 bytes and 5 in all. */
static void peaks_of_bytes_and_counts(void **unused)
{
    struct snapshot *s = snapshot_of(HEADER "1,0:0:0,allocate,0x100,5,0\n1,0:0:0,allocate,0x200,7,0\n"
                                            "1,0:0:0,free,0x100,5,0\n1,0:0:0,allocate,0x300,1,0\n"
                                            "1,0:0:0,allocate,0x400,1,0\n1,0:0:0,allocate,0x500,1,0\n");
    (void)unused;
    assert_true(s->devices[0].has_stats && s->devices[0].stats_exact);
    assert_int_equal(stat_of(s, "allocated_bytes.all.peak"), 12);
    assert_int_equal(stat_of(s, "allocation.all.peak"), 4);
    assert_int_equal(stat_of(s, "allocated_bytes.all.allocated"), 15);
    assert_int_equal(stat_of(s, "allocation.all.allocated"), 5);
    assert_int_equal(stat_of(s, "reserved_bytes.small_pool.current"), 10);
    assert_int_equal(stat_of(s, "reserved_bytes.large_pool.peak"), 0);
    assert_int_equal(stat_of(s, "num_device_alloc"), 5);
    assert_int_equal(stat_of(s, "num_device_free"), 1);
    snapshot_free(s);
    s = snapshot_of(HEADER "1,0:0:0,allocate,0x100000,1048576,0\n1,0:0:0,allocate,0x200000,1048577,0\n");
    assert_int_equal(stat_of(s, "allocated_bytes.small_pool.peak"), 1048576);
    assert_int_equal(stat_of(s, "allocated_bytes.large_pool.peak"), 1048577);
    assert_false(s->end.segments[0].is_large);
    assert_true(s->end.segments[1].is_large);
    snapshot_free(s);
}

/* Many rows in a random order, beside a plain table of what lives. */
static void what_lives_at_the_end(void **unused)
{
    enum { PLACES = 300, ROWS = 40000 };
    uint64_t sizes[PLACES] = {0}, x = 7;
    char *text = malloc(ROWS * 64 + 100);
    size_t length = (size_t)sprintf(text, "%s", HEADER), lives = 0, at = 0;
    struct snapshot *snapshot;
    struct error err = {0};
    (void)unused;
    for (int row = 0; row < ROWS; row++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        size_t place = (size_t)(x >> 33) % PLACES;
        uint64_t size = sizes[place] ? sizes[place] : 1 + (x >> 50);
        length += (size_t)sprintf(text + length, "%d,01:00:00.%06d,%s,0x%zx,%llu,0x%x\n", row % 3, row,
                                  sizes[place] ? "free" : "allocate", 0x10000 + place * 0x10000,
                                  (unsigned long long)size, (unsigned)place % 5);
        sizes[place] = sizes[place] ? 0 : size;
    }
    assert_int_equal(read_text(text, 3, &snapshot, &err), 0);
    free(text);
    assert_int_equal(snapshot->entries.count, ROWS);
    assert_int_equal(snapshot->trace_count, 4);
    for (size_t place = 0; place < PLACES; place++) {
        if (!sizes[place])
            continue;
        const struct segment *segment = &snapshot->end.segments[lives];
        const struct block *block = &snapshot->end.blocks[lives++];
        assert_int_equal(segment->address, 0x10000 + place * 0x10000);
        assert_int_equal(segment->total_size, sizes[place]);
        assert_int_equal(segment->stream, place % 5);
        assert_int_equal(segment->device, 3);
        assert_int_equal(block->size, sizes[place]);
        assert_int_equal(block->requested, sizes[place]);
        assert_int_equal(block->state, BLOCK_ACTIVE_ALLOCATED);
        at += sizes[place];
    }
    assert_true(lives > 50);
    assert_int_equal(snapshot->end.segment_count, lives);
    assert_int_equal(stat_of(snapshot, "allocated_bytes.all.current"), at);
    assert_int_equal(stat_of(snapshot, "allocation.all.current"), lives);
    assert_false(snapshot->processes[0].incomplete);
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(snapshot->entries.device[i], 3);
    snapshot_free(snapshot);
}

static void the_name_tells_the_device(void **unused)
{
    (void)unused;
    assert_int_equal(rmm_device_of_name(NULL), 0);
    assert_int_equal(rmm_device_of_name("x.csv"), 0);
    assert_int_equal(rmm_device_of_name("x.csv.dev0"), 0);
    assert_int_equal(rmm_device_of_name("x.csv.dev1"), 1);
    assert_int_equal(rmm_device_of_name("/logs/x.csv.dev12"), 12);
    assert_int_equal(rmm_device_of_name("x.dev3.csv"), 3);
    assert_int_equal(rmm_device_of_name("x.csv.dev3.gz"), 3);
    assert_int_equal(rmm_device_of_name("a.dev4.b.dev5"), 5);
    assert_int_equal(rmm_device_of_name("logs.dev7/x.csv"), 0);
    assert_int_equal(rmm_device_of_name("x.csv.dev"), 0);
    assert_int_equal(rmm_device_of_name("x.csv.device1"), 0);
    assert_int_equal(rmm_device_of_name("x.csv.dev1a"), 0);
    assert_int_equal(rmm_device_of_name("dev1"), 0);
    assert_int_equal(rmm_device_of_name("x.csv.dev65537"), UINT16_MAX); /* no device: it is not read */
    assert_int_equal(rmm_device_of_name("x.csv.dev99999999999999999999"), UINT16_MAX);
}

static void a_header_alone_is_a_log_of_nothing(void **unused)
{
    struct snapshot *snapshot;
    struct error err = {0};
    (void)unused;
    assert_int_equal(read_text(HEADER, 2, &snapshot, &err), 0);
    assert_int_equal(snapshot->entries.count, 0);
    assert_int_equal(snapshot->device_count, 1);
    assert_int_equal(snapshot->devices[0].ordinal, 2);
    assert_true(snapshot->devices[0].stats_exact);
    snapshot_free(snapshot);
}

static void a_name_of_no_device_is_refused(void **unused)
{
    struct snapshot *snapshot;
    struct error err = {0};
    (void)unused;
    assert_int_equal(read_text(HEADER, rmm_device_of_name("x.csv.dev99999999999"), &snapshot, &err), STATUS_INPUT);
    assert_null(snapshot);
    assert_non_null(strstr(err.message, ".dev"));
    assert_int_equal(read_text(HEADER, rmm_device_of_name("x.csv.dev65534"), &snapshot, &err), 0);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_is_told_by_its_header),
        cmocka_unit_test(other_text_stays_text),
        cmocka_unit_test(the_door_of_all_formats_opens_it),
        cmocka_unit_test(rows_become_entries_in_the_order_of_the_file),
        cmocka_unit_test(every_notation_of_time_is_read),
        cmocka_unit_test(time_never_goes_backwards),
        cmocka_unit_test(every_notation_of_numbers_is_read),
        cmocka_unit_test(columns_are_found_by_their_names),
        cmocka_unit_test(a_bad_row_is_named_by_its_line),
        cmocka_unit_test(a_line_has_a_limit),
        cmocka_unit_test(a_cut_last_row_is_left_out),
        cmocka_unit_test(the_null_pointer_is_nothing),
        cmocka_unit_test(what_contradicts_is_kept_and_told),
        cmocka_unit_test(peaks_of_bytes_and_counts),
        cmocka_unit_test(what_lives_at_the_end),
        cmocka_unit_test(the_name_tells_the_device),
        cmocka_unit_test(a_name_of_no_device_is_refused),
        cmocka_unit_test(a_header_alone_is_a_log_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
