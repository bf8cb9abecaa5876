/* Merging: each process keeps its own, entries come in the order of time, clocks of one boot agree. */
#include "sample.h"

#include "format/format.h"
#include "format/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define START INT64_C(1700000000000000)

static uint32_t content(struct snapshot *s, const char *text)
{
    return snapshot_string(s, text, strlen(text));
}

static void set(struct snapshot *s, const char *key, const char *text)
{
    uint32_t object = snapshot_shared_string(s, text, strlen(text));
    snapshot_add_setting(s, content(s, key), value_make(VALUE_STRING, object));
}

/* A recorded process on one machine: `offset` is what its real-time clock was ahead. */
static struct snapshot *process_of(int64_t pid, const char *boot, int64_t offset)
{
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    s->processes[0] = (struct process){
        .pid = pid, .program = content(s, "app"), .host = content(s, "node"), .boot_id = content(s, boot),
        .arguments = STRING_NONE, .driver = STRING_NONE, .rank = pid, .exit_status = -1, .start_time = START + offset,
        .end_time = START + offset + 1000000, .clock_realtime = START + offset, .clock_monotonic = 5000000,
        .implied_blocks = true};
    return s;
}

static void add(struct snapshot *s, int64_t time, uint64_t size, uint16_t device)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = ACTION_SEGMENT_ALLOC;
    entry.address = size << 20;
    entry.size = size;
    entry.time = time;
    entry.device = device;
    assert_int_equal(snapshot_add_entry(s, &entry), 0);
}

/* Merges and frees the sources; fails if one of them is refused. */
static struct snapshot *merged(struct snapshot **sources, size_t count, struct merge_facts *facts)
{
    struct merge *merge = merge_new();
    struct snapshot *result = NULL;
    struct error err = {0};
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file%zu", i);
        if (merge_add(merge, sources[i], name, &err))
            fail_msg("%s", err.message);
        snapshot_free(sources[i]);
    }
    if (merge_finish(merge, &result, facts, &err))
        fail_msg("%s", err.message);
    merge_free(merge);
    return result;
}

static int refused(struct snapshot *first, struct snapshot *second, struct error *err)
{
    struct merge *merge = merge_new();
    assert_int_equal(merge_add(merge, first, "first", err), 0);
    int status = merge_add(merge, second, "second", err);
    merge_free(merge);
    snapshot_free(first);
    snapshot_free(second);
    return status;
}

static void entries_come_in_the_order_of_time(void **unused)
{
    (void)unused;
    struct merge_facts facts;
    struct snapshot *sources[] = {process_of(1, "boot", 0), process_of(2, "boot", 0)};
    add(sources[0], START + 10, 1, 0);
    add(sources[0], START + 30, 3, 0);
    add(sources[0], START + 20, 4, 1); /* a thread was late: a process's own order stays */
    add(sources[1], START + 20, 2, 0);
    add(sources[1], START + 30, 5, 0);
    struct snapshot *s = merged(sources, 2, &facts);
    static const struct { uint64_t size; uint16_t process, device; } wanted[] = {
        {1, 0, 0}, {2, 1, 0}, {3, 0, 0}, {4, 0, 1}, {5, 1, 0}};
    assert_int_equal(s->entries.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(s->entries.size[i], wanted[i].size);
        assert_int_equal(s->entries.process[i], wanted[i].process);
        assert_int_equal(s->entries.device[i], wanted[i].device);
    }
    assert_int_equal(s->device_count, 3);
    assert_int_equal(facts.moved, 0);
    assert_int_equal(facts.hosts, 1);
    snapshot_free(s);
}

static void a_clock_that_was_set_is_set_back(void **unused)
{
    (void)unused;
    struct merge_facts facts;
    struct snapshot *sources[] = {process_of(1, "boot", 0), process_of(2, "boot", -3600000000)};
    add(sources[0], START + 10, 1, 0);
    add(sources[1], START - 3600000000 + 20, 2, 0); /* ten microseconds later, on a clock an hour behind */
    struct snapshot *s = merged(sources, 2, &facts);
    assert_int_equal(s->entries.size[1], 2);
    assert_int_equal(s->entries.time[1], START + 20);
    assert_int_equal(s->processes[1].start_time, START);
    assert_int_equal(s->processes[1].end_time, START + 1000000);
    assert_int_equal(facts.moved, 1);
    assert_int_equal(facts.largest_step, 3600000000);
    snapshot_free(s);
}

static void clocks_of_other_machines_are_left_alone(void **unused)
{
    (void)unused;
    struct merge_facts facts;
    struct snapshot *sources[] = {process_of(1, "boot", 0), process_of(2, "other", -3600000000)};
    add(sources[0], START + 10, 1, 0);
    add(sources[1], START - 3600000000 + 20, 2, 0);
    struct snapshot *s = merged(sources, 2, &facts);
    assert_int_equal(s->entries.size[0], 2);
    assert_int_equal(s->entries.time[0], START - 3600000000 + 20);
    assert_int_equal(facts.moved, 0);
    assert_int_equal(facts.hosts, 2);
    snapshot_free(s);
}

static const char *setting(const struct snapshot *s, size_t process, const char *key)
{
    value found;
    if (!snapshot_process_setting(s, process, key, &found) || value_kind(found) != VALUE_STRING)
        return NULL;
    return snapshot_object_text(s, (uint32_t)value_payload(found), NULL);
}

static void settings_that_differ_are_each_processs_own(void **unused)
{
    (void)unused;
    struct merge_facts facts;
    struct snapshot *sources[] = {process_of(1, "boot", 0), process_of(2, "boot", 0), process_of(3, "boot", 0)};
    for (int i = 0; i < 3; i++)
        set(sources[i], "COMMON", "same");
    set(sources[0], "CONF", "a");
    set(sources[1], "CONF", "b");
    set(sources[2], "ONLY", "here");
    struct snapshot *pair = merged(sources, 2, &facts);
    struct snapshot *again[] = {pair, sources[2]};
    struct snapshot *s = merged(again, 2, &facts); /* merged files can be merged */
    value plain;
    assert_true(snapshot_get_setting(s, "COMMON", &plain));
    assert_false(snapshot_get_setting(s, "CONF", &plain));
    assert_false(snapshot_get_setting(s, "ONLY", &plain));
    assert_string_equal(setting(s, 0, "CONF"), "a");
    assert_string_equal(setting(s, 1, "CONF"), "b");
    assert_null(setting(s, 2, "CONF"));
    assert_string_equal(setting(s, 2, "ONLY"), "here");
    assert_string_equal(setting(s, 1, "COMMON"), "same");
    assert_int_equal(s->setting_count, 1 + 3);
    snapshot_free(s);
}

static void everything_of_a_snapshot_comes_along(void **unused)
{
    (void)unused;
    struct merge_facts facts;
    struct snapshot *sources[] = {sample_full(), sample_full()};
    sources[0]->has_raw = sources[1]->has_raw = false;
    sources[1]->processes[0].pid++;
    sources[1]->processes[1].pid++;
    struct snapshot *one = sample_full(), *s = merged(sources, 2, &facts);
    assert_int_equal(s->entries.count, 2 * one->entries.count);
    assert_int_equal(s->process_count, 2 * one->process_count);
    assert_int_equal(s->module_count, 2 * one->module_count);
    assert_int_equal(s->frame_count, 2 * one->frame_count);
    assert_int_equal(s->context_count, 2 * one->context_count);
    assert_int_equal(s->annotation_count, 2 * one->annotation_count);
    assert_int_equal(s->end.segment_count, 2 * one->end.segment_count);
    assert_int_equal(s->end.block_count, 2 * one->end.block_count);
    assert_int_equal(s->pool_count, one->pool_count);
    size_t odd_words = 0;
    for (size_t i = 0; i < s->entries.count; i++) {
        value odd;
        if (s->entries.action[i] != ACTION_OTHER)
            continue;
        assert_true(snapshot_get_odd(s, ROW_ENTRY, i, 0, &odd));
        assert_string_equal(snapshot_object_text(s, (uint32_t)value_payload(odd), NULL), "defrag");
        assert_true(snapshot_get_odd(s, ROW_ENTRY, i, 2, &odd));
        assert_int_equal(value_row_number(odd), s->entries.process[i] < 2 ? 1 : 1 + one->context_count);
        odd_words++;
    }
    assert_int_equal(odd_words, 2);
    for (size_t i = 0; i < one->end.segment_count; i++) {
        const struct segment *from = &one->end.segments[i], *to = &s->end.segments[one->end.segment_count + i];
        assert_int_equal(to->process, from->process + one->process_count);
        assert_int_equal(to->address, from->address);
        if (from->context != CONTEXT_NONE)
            assert_int_equal(to->context, from->context + one->context_count);
    }
    size_t length;
    unsigned char *bytes = sample_bin(s, &length);
    struct snapshot *back = NULL;
    struct error err = {0};
    if (format_read_memory(bytes, length, NULL, &back, &err))
        fail_msg("%s", err.message);
    assert_int_equal(back->process_count, s->process_count);
    snapshot_free(back);
    free(bytes);
    snapshot_free(one);
    snapshot_free(s);
}

static void what_does_not_go_together_is_refused(void **unused)
{
    (void)unused;
    struct error err = {0};
    assert_int_equal(refused(process_of(1, "boot", 0), process_of(1, "boot", 0), &err), STATUS_INPUT);
    assert_string_equal(err.message, "second is of the same process as first (number 1); merge one of them");
    struct snapshot *later = process_of(1, "boot", 0); /* it became another program */
    later->processes[0].start_time += 7000;
    assert_int_equal(refused(process_of(1, "boot", 0), later, &err), STATUS_OK);
    assert_int_equal(refused(process_of(1, "boot", 0), snapshot_new(SOURCE_TORCH), &err), STATUS_INPUT);
    assert_non_null(strstr(err.message, "only files of one kind"));
}

static void entries_without_times_keep_their_place(void **unused)
{
    (void)unused;
    struct merge_facts facts;
    struct snapshot *sources[] = {process_of(1, "boot", 0), process_of(2, "boot", 0)};
    add(sources[0], 0, 1, 0);
    add(sources[0], 0, 2, 0);
    sources[0]->entries.flags[0] = sources[0]->entries.flags[1] = ENTRY_NO_TIME;
    add(sources[1], START + 10, 3, 0);
    add(sources[1], 0, 4, 0);
    sources[1]->entries.flags[1] = ENTRY_NO_TIME;
    add(sources[1], START + 20, 5, 0);
    struct snapshot *s = merged(sources, 2, &facts);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(s->entries.size[i], i + 1);
    assert_int_equal(facts.untimed, 1);
    snapshot_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_in_the_order_of_time),
        cmocka_unit_test(a_clock_that_was_set_is_set_back),
        cmocka_unit_test(clocks_of_other_machines_are_left_alone),
        cmocka_unit_test(settings_that_differ_are_each_processs_own),
        cmocka_unit_test(everything_of_a_snapshot_comes_along),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(entries_without_times_keep_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
