/* A recording and PyTorch's history become one snapshot: nothing of the history is lost, and what others took stands between
 * its entries. */
#include "analyze/replay.h"
#include "format/format.h"
#include "format/join.h"
#include "snapshot/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct snapshot *read_data(const char *name)
{
    char path[1024];
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    snprintf(path, sizeof(path), "%s/%s", TEST_DATA, name);
    if (format_read(path, NULL, &snapshot, &err))
        fail_msg("%s: %s", name, err.message);
    return snapshot;
}

static bool is_step(const struct snapshot *snapshot, size_t i)
{
    return snapshot->entries.action[i] >= ACTION_SEGMENT_ALLOC && snapshot->entries.action[i] <= ACTION_SEGMENT_UNMAP;
}

/* A recording that saw every segment of the history, at the same times, and after each third one a piece of others'. */
static struct snapshot *recording_of(const struct snapshot *history)
{
    struct snapshot *made = snapshot_new(SOURCE_RECORDED);
    uint64_t other = UINT64_C(0x600000000000);
    unsigned seen = 0;
    assert_non_null(made);
    assert_int_not_equal(snapshot_device(made, 0, 0), NONE32);
    for (size_t i = 0; i < history->entries.count; i++) {
        struct entry entry = snapshot_entry(history, i), outside;
        if (!is_step(history, i))
            continue;
        entry.context = CONTEXT_NONE;
        entry.shape = SHAPE_OURS;
        entry.compile_context = entry.user_metadata = STRING_NONE;
        entry.pool = NONE32;
        assert_int_equal(snapshot_add_entry(made, &entry), 0);
        outside = entry;
        outside.action = ACTION_SEGMENT_ALLOC;
        outside.flags |= ENTRY_OUTSIDE;
        outside.address = other += 4 << 20;
        outside.size = 3 << 20;
        if (seen++ % 3 == 0)
            assert_int_equal(snapshot_add_entry(made, &outside), 0);
    }
    made->trace_count = 1;
    made->end.moment = made->entries.count;
    return made;
}

static void is_same_entry(const struct snapshot *a, size_t at, const struct snapshot *b, size_t index)
{
    struct entry x = snapshot_entry(a, at), y = snapshot_entry(b, index);
    assert_int_equal(x.action, y.action);
    assert_int_equal(x.address, y.address);
    assert_int_equal(x.size, y.size);
    assert_int_equal(x.stream, y.stream);
    assert_int_equal(x.time, y.time);
    uint32_t s = snapshot_context_stack(a, x.context), t = snapshot_context_stack(b, y.context);
    for (; s != STACK_EMPTY && t != STACK_EMPTY; s = a->stacks[s].parent, t = b->stacks[t].parent) {
        const struct frame *f = &a->frames[a->stacks[s].frame], *g = &b->frames[b->stacks[t].frame];
        assert_string_equal(snapshot_object_text(a, f->name, NULL), snapshot_object_text(b, g->name, NULL));
        assert_string_equal(snapshot_object_text(a, f->filename, NULL), snapshot_object_text(b, g->filename, NULL));
        assert_int_equal(f->line, g->line);
    }
    assert_int_equal(s, STACK_EMPTY);
    assert_int_equal(t, STACK_EMPTY);
}

static void joins(const char *name)
{
    struct snapshot *history = read_data(name), *again = read_data(name), *both = NULL;
    struct snapshot *recorded = recording_of(history);
    struct error err = {0};
    if (join_history(recorded, history, &both, &err))
        fail_msg("%s", err.message);
    size_t next = 0, others = 0;
    size_t last_step = 0;
    for (size_t i = 0; i < both->entries.count; i++) {
        if (both->entries.flags[i] & ENTRY_OUTSIDE) { /* behind the segment that it was seen behind, by time before the next */
            others++;
            assert_int_equal(both->entries.time[i], both->entries.time[last_step]);
            for (size_t k = last_step; k < i; k++)
                assert_true(both->entries.time[k] <= both->entries.time[i]);
            continue;
        }
        if (is_step(both, i))
            last_step = i;
        assert_true(next < again->entries.count);
        is_same_entry(both, i, again, next++);
    }
    assert_int_equal(next, again->entries.count);
    assert_true(others > 0);
    assert_true(snapshot_tells_requests(both, 0));
    struct replay_result result;
    struct replay_options options = {.limit = REPLAY_NO_LIMIT, .moment = both->entries.count};
    assert_int_equal(replay_run(both, &options, &result, &err), 0);
    assert_true(result.exact);
    snapshot_free(history);
    snapshot_free(again);
    snapshot_free(recorded);
    snapshot_free(both);
}

static void history_is_whole_and_others_stand_where_they_were_seen(void **state)
{
    (void)state;
    joins("train.pickle.gz");
    joins("expandable.pickle.gz");
}

static void only_a_recording_and_a_history_are_joined(void **state)
{
    (void)state;
    struct snapshot *history = read_data("train.pickle.gz"), *other = read_data("train.pickle.gz"), *both = NULL;
    struct error err = {0};
    assert_int_equal(join_history(other, history, &both, &err), STATUS_INPUT);
    assert_null(both);
    snapshot_free(history);
    snapshot_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_is_whole_and_others_stand_where_they_were_seen),
        cmocka_unit_test(only_a_recording_and_a_history_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
