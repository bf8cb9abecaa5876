/* The causes of failures, the holes and what pins them, on states made by hand. */
#include "analyze/explain.h"
#include "render/explain_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

/* One segment of 100 MiB: 30 free, 10 live, 20 free, 10 live, 30 free; and a request that failed. */
static struct snapshot *carved(int64_t stream, int64_t pool, uint64_t asked, uint64_t device_free)
{
    static const uint64_t sizes[] = {30, 10, 20, 10, 30};
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    struct segment segment = {.address = 1 << 30, .total_size = 100 * MIB, .context = CONTEXT_NONE, .stream = stream,
                              .pool = snapshot_pool(s, pool, 0), .is_large = true};
    struct entry entry;
    uint64_t address = segment.address;
    assert_int_equal(state_add_segment(&s->end, &segment), STATUS_OK);
    for (size_t i = 0; i < 5; i++) {
        struct block block = {.address = address, .size = sizes[i] * MIB, .requested = sizes[i] * MIB,
                              .context = CONTEXT_NONE, .state = i % 2 ? BLOCK_ACTIVE_ALLOCATED : BLOCK_INACTIVE};
        assert_int_equal(state_add_block(&s->end, &block), STATUS_OK);
        address += block.size;
    }
    entry_init(&entry);
    entry.action = ACTION_OOM;
    entry.size = asked;
    entry.address = device_free;
    assert_int_equal(snapshot_add_entry(s, &entry), STATUS_OK);
    s->end.moment = 1;
    s->end.exact = true;
    return s;
}

static struct explain explained(const struct snapshot *s)
{
    const struct explain_options options = {.replay = {.limit = REPLAY_NO_LIMIT}, .skips_settings = true};
    struct explain explain;
    struct error err = {0};
    assert_int_equal(explain_collect(s, &options, &explain, &err), STATUS_OK);
    return explain;
}

static void check_text(const struct explain *explain, const char *wanted)
{
    const struct explain_words words = {.rows = 5, .moment = "oom"};
    struct text text = {0};
    struct error err;
    assert_int_equal(explain_text(explain, &words, &text, &err), STATUS_OK);
    if (!strstr(text_string(&text), wanted))
        fail_msg("'%s' is not in: %s", wanted, text_string(&text));
    text_free(&text);
}

/* Free bytes and the largest hole both stand in the sentence, and the two live blocks have their cost. */
static void pieces_that_are_too_small_are_fragmentation(void **unused)
{
    (void)unused;
    struct snapshot *s = carved(0, 0, 60 * MIB, 5 * MIB);
    struct explain explain = explained(s);
    assert_int_equal(explain.cause, EXPLAIN_FRAGMENTED);
    assert_int_equal(explain.room.kind, EXPLAIN_ROOM_DEVICE);
    assert_int_equal(explain.room.low, 105 * MIB);
    assert_int_equal(explain.memory.free, 80 * MIB);
    assert_int_equal(explain.memory.largest_hole, 30 * MIB);
    assert_int_equal(explain.memory.holes, 3);
    assert_int_equal(explain.memory.allocated, 20 * MIB);
    assert_int_equal(explain.lacks, 0);
    assert_int_equal(explain.reasons[EXPLAIN_HOLE_TOO_SMALL].count, 3);
    assert_int_equal(explain.pins.count, 1); /* 30 + 10 + 20 are enough without one of the two */
    assert_int_equal(explain.pins.bytes, 10 * MIB);
    assert_int_equal(explain.pins.opened, 60 * MIB);
    assert_int_equal(explain.holes[0].before, NONE32);
    assert_int_equal(explain.holes[0].after, 1);
    check_text(&explain, "60.00 MiB were asked for and 80.00 MiB were free inside the allocator, but in 3 holes, the largest "
                         "of 30.00 MiB; the device had 5.00 MiB left");
    explain_free(&explain);
    snapshot_free(s);
}

static void holes_of_another_stream_or_pool_are_told_apart(void **unused)
{
    (void)unused;
    struct snapshot *s = carved(7, 0, 25 * MIB, 5 * MIB);
    struct explain explain = explained(s);
    assert_int_equal(explain.cause, EXPLAIN_OTHER_STREAM);
    assert_int_equal(explain.reasons[EXPLAIN_HOLE_OTHER_STREAM].bytes, 80 * MIB);
    explain_free(&explain);
    snapshot_free(s);
    s = carved(0, 3, 25 * MIB, 5 * MIB);
    explain = explained(s);
    assert_int_equal(explain.cause, EXPLAIN_OTHER_POOL);
    assert_int_equal(explain.pins.count, 0); /* nothing of that pool is given back for this request */
    explain_free(&explain);
    snapshot_free(s);
}

static void too_much_is_too_big_or_full(void **unused)
{
    (void)unused;
    struct snapshot *s = carved(0, 0, 106 * MIB, 5 * MIB);
    struct explain explain = explained(s);
    assert_int_equal(explain.cause, EXPLAIN_TOO_BIG);
    explain_free(&explain);
    snapshot_free(s);
    s = carved(0, 0, 90 * MIB, 5 * MIB);
    explain = explained(s);
    assert_int_equal(explain.cause, EXPLAIN_FULL);
    assert_int_equal(explain.lacks, 5 * MIB);
    explain_free(&explain);
    snapshot_free(s);
}

/* Of a device of 1 GiB the allocator has 100 MiB, and only 5 are free. */
static void what_others_hold_is_outside(void **unused)
{
    (void)unused;
    struct snapshot *s = carved(0, 0, 90 * MIB, 5 * MIB);
    uint32_t device = snapshot_device(s, 0, 0);
    s->devices[device].total = 1024 * MIB;
    struct explain explain = explained(s);
    assert_int_equal(explain.cause, EXPLAIN_OUTSIDE);
    assert_int_equal(explain.outside.bytes, 919 * MIB); /* used less reserved, not less allocated */
    assert_int_equal(explain.outside.rest, 919 * MIB);
    explain_free(&explain);
    snapshot_free(s);
}

static void a_device_with_room_means_a_limit(void **unused)
{
    (void)unused;
    struct snapshot *s = carved(0, 0, 60 * MIB, 900 * MIB);
    struct explain explain = explained(s);
    assert_int_equal(explain.room.kind, EXPLAIN_ROOM_INFERRED);
    assert_int_equal(explain.room.low, 100 * MIB);
    assert_int_equal(explain.room.high, 160 * MIB);
    check_text(&explain, "a memory limit that the recording does not name");
    explain_free(&explain);
    snapshot_free(s);
}

static void frees_that_wait_are_named(void **unused)
{
    (void)unused;
    struct snapshot *s = carved(0, 0, 90 * MIB, 5 * MIB);
    s->end.blocks[1].state = BLOCK_ACTIVE_PENDING_FREE;
    struct explain explain = explained(s);
    assert_int_equal(explain.cause, EXPLAIN_PENDING);
    assert_int_equal(explain.memory.pending, 10 * MIB);
    explain_free(&explain);
    snapshot_free(s);
}

/* Eight blocks of one line, made over the whole recording and never freed. */
static void what_only_grew_is_a_leak_to_be_looked_at(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    struct frame frame = {.name = snapshot_shared_string(s, "keep", 4), .filename = snapshot_shared_string(s, "/a/t.py", 7),
                          .line = 12, .module = NONE32, .flags = FRAME_PYTHON};
    uint32_t stack = snapshot_push_frame(s, STACK_EMPTY, snapshot_add_frame(s, &frame));
    struct segment segment = {.address = 1 << 30, .total_size = 100 * MIB, .context = CONTEXT_NONE,
                              .pool = snapshot_pool(s, 0, 0), .is_large = true};
    struct entry entry;
    assert_int_equal(state_add_segment(&s->end, &segment), STATUS_OK);
    for (uint64_t i = 0; i < 8; i++) {
        entry_init(&entry);
        entry.action = ACTION_ALLOC;
        entry.address = segment.address + i * 12 * MIB;
        entry.size = 12 * MIB;
        entry.context = snapshot_add_context(s, stack);
        assert_int_equal(snapshot_add_entry(s, &entry), STATUS_OK);
        struct block block = {.address = entry.address, .size = entry.size, .requested = entry.size,
                              .context = entry.context, .state = BLOCK_ACTIVE_ALLOCATED};
        assert_int_equal(state_add_block(&s->end, &block), STATUS_OK);
    }
    struct block rest = {.address = segment.address + 96 * MIB, .size = 4 * MIB, .context = CONTEXT_NONE};
    assert_int_equal(state_add_block(&s->end, &rest), STATUS_OK);
    entry_init(&entry);
    entry.action = ACTION_OOM;
    entry.size = 20 * MIB;
    assert_int_equal(snapshot_add_entry(s, &entry), STATUS_OK);
    s->end.moment = s->entries.count;
    s->end.exact = true;
    struct explain explain = explained(s);
    assert_int_equal(explain.cause, EXPLAIN_GROWTH);
    assert_int_equal(explain.lacks, 16 * MIB);
    assert_int_equal(explain.growing_count, 1);
    assert_int_equal(explain.growing[0].bytes, 96 * MIB);
    assert_int_equal(explain.growing[0].quarters[0], 24 * MIB); /* two of nine entries */
    assert_int_equal(explain.growing[0].quarters[3], 96 * MIB);
    check_text(&explain, "16.00 MiB lacked; 96.00 MiB were allocated over the whole recording and kept, most by /a/t.py:12:keep.");
    explain_free(&explain);
    snapshot_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_that_are_too_small_are_fragmentation),
        cmocka_unit_test(holes_of_another_stream_or_pool_are_told_apart),
        cmocka_unit_test(too_much_is_too_big_or_full),
        cmocka_unit_test(what_others_hold_is_outside),
        cmocka_unit_test(a_device_with_room_means_a_limit),
        cmocka_unit_test(frees_that_wait_are_named),
        cmocka_unit_test(what_only_grew_is_a_leak_to_be_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
