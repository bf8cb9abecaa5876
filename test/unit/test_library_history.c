/* History and snapshots of the public library, by PyTorch's words about them, on the simulated driver. */
#include "library_world.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NO_CONTEXT UINT32_MAX

static void *take(size_t size, int device)
{
    void *pointer = NULL;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    if (cudamem_alloc(size, device, NULL, &pointer, &error))
        fail_msg("%s", error.message);
    return pointer;
}

static void give(void *pointer)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    if (cudamem_free(pointer, &error))
        fail_msg("%s", error.message);
}

/* The callers whose names stacks must show. */
__attribute__((noinline)) static void *allocating_function(size_t size, int device)
{
    void *pointer = take(size, device);
    __asm__ volatile("" ::: "memory");
    return pointer;
}

__attribute__((noinline)) static void freeing_function(void *pointer)
{
    give(pointer);
    __asm__ volatile("" ::: "memory");
}

static void record(cudamem_history_options options)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    options.struct_size = sizeof(options);
    if (cudamem_record_memory_history(&options, &error))
        fail_msg("%s", error.message);
    assert_string_equal(error.message, "");
}
#define RECORD(...) record((cudamem_history_options){__VA_ARGS__})

static cudamem_snapshot *snapshot_now(void)
{
    cudamem_snapshot *snapshot;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    if (cudamem_memory_snapshot(NULL, &snapshot, &error))
        fail_msg("%s", error.message);
    return snapshot;
}

static cudamem_entry entry_at(const cudamem_snapshot *snapshot, size_t index)
{
    cudamem_entry entry = {.struct_size = sizeof(entry)};
    assert_int_equal(cudamem_snapshot_entry(snapshot, index, &entry), CUDAMEM_OK);
    return entry;
}

/* Is there a frame of this function in the stack? */
static bool shows(const cudamem_snapshot *snapshot, uint32_t context, const char *name)
{
    static cudamem_frame frames[64];
    for (size_t i = 0; i < 64; i++)
        frames[i].struct_size = sizeof(frames[i]);
    size_t depth = context == NO_CONTEXT ? 0 : cudamem_snapshot_stack(snapshot, context, frames, 64);
    for (size_t i = 0; i < depth && i < 64; i++)
        if (!strcmp(frames[i].name, name))
            return true;
    return false;
}

static cudamem_block block_of(const cudamem_snapshot *snapshot, const void *pointer)
{
    cudamem_block block = {.struct_size = sizeof(block)};
    for (size_t i = 0; i < cudamem_snapshot_block_count(snapshot); i++) {
        assert_int_equal(cudamem_snapshot_block(snapshot, i, &block), CUDAMEM_OK);
        if (block.address == (uint64_t)(uintptr_t)pointer)
            return block;
    }
    fail_msg("no block at %p", pointer);
    return block;
}

/* Off, and nothing cached. */
static int begin(void **state)
{
    (void)state;
    RECORD(.enabled = CUDAMEM_HISTORY_NONE);
    assert_int_equal(cudamem_empty_cache(NULL), CUDAMEM_OK);
    return 0;
}

static void before_the_first_use_it_is_empty(void **state)
{
    (void)state;
    RECORD(.max_entries = 0);
    cudamem_snapshot *snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 0);
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 0);
    cudamem_snapshot_close(snapshot);
    uint64_t lost = 1;
    assert_int_equal(cudamem_history_lost(0, &lost, NULL), CUDAMEM_OK);
    assert_int_equal(lost, 0);
}

static void by_default_everything_is_kept_with_stacks_of_both_ends(void **state)
{
    (void)state;
    assert_int_equal(cudamem_record_memory_history(NULL, NULL), CUDAMEM_OK);
    void *pointer = allocating_function(1000, 0);
    freeing_function(pointer);
    cudamem_snapshot *snapshot = snapshot_now();
    static const int actions[] = {CUDAMEM_ACTION_SEGMENT_ALLOC, CUDAMEM_ACTION_ALLOC, CUDAMEM_ACTION_FREE_REQUESTED,
                                  CUDAMEM_ACTION_FREE_COMPLETED};
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 4);
    cudamem_entry entries[4];
    for (size_t i = 0; i < 4; i++) {
        entries[i] = entry_at(snapshot, i);
        assert_int_equal(entries[i].action, actions[i]);
        assert_true(i == 0 || entries[i].time_us >= entries[i - 1].time_us);
        assert_int_equal(entries[i].size, i ? 1000 : 2 * MIB);
        assert_int_equal(entries[i].address, (uint64_t)(uintptr_t)pointer);
    }
    assert_int_equal(entries[0].context, entries[1].context); /* one call */
    assert_int_equal(entries[2].context, entries[3].context);
    assert_true(shows(snapshot, entries[1].context, "allocating_function"));
    assert_true(shows(snapshot, entries[2].context, "freeing_function"));
    assert_false(shows(snapshot, entries[2].context, "allocating_function"));
    assert_false(shows(snapshot, entries[1].context, "cudamem_alloc")); /* our own frames are left out */
    assert_true(llabs(entries[1].time_us / 1000000 - (int64_t)time(NULL)) < 300); /* since the epoch */
    cudamem_snapshot_close(snapshot);
}

static void two_calls_with_equal_stacks_are_two_contexts(void **state)
{
    (void)state;
    RECORD(.max_entries = 0);
    void *pointers[2];
    for (int i = 0; i < 2; i++)
        pointers[i] = allocating_function(1000, 0);
    cudamem_snapshot *snapshot = snapshot_now();
    cudamem_block first = block_of(snapshot, pointers[0]), second = block_of(snapshot, pointers[1]);
    assert_int_not_equal(first.context, second.context);
    assert_true(shows(snapshot, second.context, "allocating_function"));
    cudamem_snapshot_close(snapshot);
    give(pointers[0]);
    give(pointers[1]);
}

static void contexts_are_kept_as_far_as_asked_for(void **state)
{
    (void)state;
    for (int context = CUDAMEM_CONTEXT_ALL; context <= CUDAMEM_CONTEXT_NONE; context++) {
        begin(NULL);
        RECORD(.context = context);
        void *freed = allocating_function(1000, 0), *kept = allocating_function(2000, 0);
        freeing_function(freed);
        cudamem_snapshot *snapshot = snapshot_now();
        assert_int_equal(cudamem_snapshot_entry_count(snapshot), 5);
        cudamem_entry alloc = entry_at(snapshot, 1), free_entry = entry_at(snapshot, 3);
        bool in_entries = context <= CUDAMEM_CONTEXT_ALLOC;
        assert_int_equal(alloc.context != NO_CONTEXT, in_entries);
        assert_int_equal(shows(snapshot, alloc.context, "allocating_function"), in_entries);
        assert_int_equal(shows(snapshot, free_entry.context, "freeing_function"), context == CUDAMEM_CONTEXT_ALL);
        if (context == CUDAMEM_CONTEXT_ALLOC)
            assert_int_equal(free_entry.context, alloc.context); /* the allocation's own */
        assert_int_equal(shows(snapshot, block_of(snapshot, kept).context, "allocating_function"),
                         context <= CUDAMEM_CONTEXT_STATE);
        cudamem_snapshot_close(snapshot);
        give(kept);
    }
}

static void python_stacks_of_a_program_without_python_are_empty(void **state)
{
    (void)state;
    RECORD(.stacks = CUDAMEM_STACKS_PYTHON);
    void *pointer = take(1000, 0);
    cudamem_snapshot *snapshot = snapshot_now();
    uint32_t context = block_of(snapshot, pointer).context;
    assert_int_not_equal(context, NO_CONTEXT); /* taken, and without frames */
    assert_int_equal(cudamem_snapshot_stack(snapshot, context, NULL, 0), 0);
    cudamem_snapshot_close(snapshot);
    give(pointer);
}

static void the_ring_keeps_the_newest_of_each_device(void **state)
{
    (void)state;
    uint64_t lost;
    RECORD(.max_entries = 1000, .context = CUDAMEM_CONTEXT_NONE);
    for (int i = 0; i < 500; i++) /* 1 + 1500 entries */
        give(take(512 + (size_t)i, 0));
    give(take(100, 1));
    cudamem_snapshot *snapshot = snapshot_now();
    size_t count[2] = {0, 0};
    for (size_t i = 0; i < cudamem_snapshot_entry_count(snapshot); i++)
        count[entry_at(snapshot, i).device]++;
    assert_int_equal(count[0], 1000);
    assert_int_equal(count[1], 4);
    size_t last = cudamem_snapshot_entry_count(snapshot) - 5;
    assert_int_equal(entry_at(snapshot, last).size, 512 + 499);
    assert_int_equal(entry_at(snapshot, last - 3).size, 512 + 498);
    cudamem_snapshot_close(snapshot);
    assert_int_equal(cudamem_history_lost(0, &lost, NULL), CUDAMEM_OK);
    assert_int_equal(lost, 502); /* with the mark of the snapshot */
    assert_int_equal(cudamem_history_lost(1, &lost, NULL), CUDAMEM_OK);
    assert_int_equal(lost, 0);
}

static void a_ring_that_shrinks_or_grows_keeps_the_newest_in_order(void **state)
{
    (void)state;
    RECORD(.max_entries = 10, .context = CUDAMEM_CONTEXT_NONE);
    void *held = take(100, 0);
    for (size_t i = 1; i <= 20; i++)
        give(take(i, 0));
    RECORD(.max_entries = 6, .context = CUDAMEM_CONTEXT_NONE);
    RECORD(.max_entries = 9, .context = CUDAMEM_CONTEXT_NONE);
    give(take(21, 0));
    cudamem_snapshot *snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 9);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(entry_at(snapshot, i).size, 19 + i / 3);
    cudamem_snapshot_close(snapshot);
    give(held);
}

static void state_keeps_one_entry_and_the_stacks_of_what_lives(void **state)
{
    (void)state;
    RECORD(.enabled = CUDAMEM_HISTORY_STATE, .max_entries = 1000);
    void *kept = allocating_function(1000, 0);
    give(take(700, 0));
    cudamem_snapshot *snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 1);
    assert_int_equal(entry_at(snapshot, 0).action, CUDAMEM_ACTION_FREE_COMPLETED);
    assert_true(shows(snapshot, block_of(snapshot, kept).context, "allocating_function"));
    cudamem_snapshot_close(snapshot);
    give(kept);
}

static void ending_forgets_and_clearing_begins_anew(void **state)
{
    (void)state;
    RECORD(.context = CUDAMEM_CONTEXT_NONE);
    void *pointer = take(1000, 0);
    RECORD(.context = CUDAMEM_CONTEXT_NONE); /* goes on */
    cudamem_snapshot *snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 2);
    cudamem_snapshot_close(snapshot);
    RECORD(.context = CUDAMEM_CONTEXT_NONE, .clear_history = 1);
    give(pointer);
    snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 2);
    assert_int_equal(entry_at(snapshot, 0).action, CUDAMEM_ACTION_FREE_REQUESTED);
    cudamem_snapshot_close(snapshot);
    RECORD(.enabled = CUDAMEM_HISTORY_NONE);
    pointer = take(1000, 0);
    snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 0);
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 1); /* what there is it shows all the same */
    assert_int_equal(block_of(snapshot, pointer).context, NO_CONTEXT);
    cudamem_snapshot_close(snapshot);
    give(pointer);
}

static void skipped_actions_make_no_entries(void **state)
{
    (void)state;
    RECORD(.skip_actions = 1u << CUDAMEM_ACTION_FREE_REQUESTED | 1u << CUDAMEM_ACTION_SEGMENT_ALLOC);
    give(take(1000, 0));
    cudamem_snapshot *snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 2);
    assert_int_equal(entry_at(snapshot, 0).action, CUDAMEM_ACTION_ALLOC);
    assert_int_equal(entry_at(snapshot, 1).action, CUDAMEM_ACTION_FREE_COMPLETED);
    cudamem_snapshot_close(snapshot);
}

static void a_snapshot_is_an_entry_of_the_next_one(void **state)
{
    (void)state;
    RECORD(.context = CUDAMEM_CONTEXT_ALL);
    void *pointer = take(1000, 0);
    cudamem_snapshot_close(snapshot_now());
    cudamem_snapshot *snapshot = snapshot_now();
    size_t count = cudamem_snapshot_entry_count(snapshot);
    cudamem_entry entry = {.struct_size = sizeof(entry)};
    for (size_t i = 0; i < count && (entry.action != CUDAMEM_ACTION_SNAPSHOT || entry.device); i++)
        entry = entry_at(snapshot, i);
    assert_int_equal(entry.action, CUDAMEM_ACTION_SNAPSHOT);
    assert_int_equal(entry.address, 0);
    assert_int_equal(entry.size, 1024); /* active bytes */
    assert_int_equal(entry.context, NO_CONTEXT);
    cudamem_snapshot_close(snapshot);
    give(pointer);
}

static void count_snapshots(void *self, const cudamem_trace_event *event)
{
    *(int *)self += event->action == CUDAMEM_ACTION_SNAPSHOT && event->size == 1024;
}

static void trackers_hear_of_snapshots_recorded_or_not(void **state)
{
    (void)state;
    int seen = 0;
    uint64_t id;
    void *pointer = take(1000, 0);
    assert_int_equal(cudamem_attach_trace_tracker(count_snapshots, &seen, &id, NULL), CUDAMEM_OK);
    cudamem_snapshot_close(snapshot_now());
    assert_int_equal(seen, 1);
    RECORD(.skip_actions = 1u << CUDAMEM_ACTION_SNAPSHOT);
    cudamem_snapshot_close(snapshot_now());
    assert_int_equal(seen, 2);
    cudamem_snapshot *snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 0);
    cudamem_snapshot_close(snapshot);
    assert_int_equal(cudamem_detach(id, NULL), CUDAMEM_OK);
    give(pointer);
}

static void try_everything(void *self, const cudamem_trace_event *event)
{
    int *refused = self;
    cudamem_snapshot *snapshot;
    (void)event;
    *refused += cudamem_record_memory_history(NULL, NULL) == CUDAMEM_ERROR_REENTERED;
    *refused += cudamem_memory_snapshot(NULL, &snapshot, NULL) == CUDAMEM_ERROR_REENTERED && !snapshot;
    *refused += cudamem_dump_snapshot(NULL, NULL) == CUDAMEM_ERROR_REENTERED;
    *refused += cudamem_annotation_begin("x", 0, NULL) == CUDAMEM_ERROR_REENTERED;
    *refused += cudamem_save_memory_usage(NULL, NULL, NULL) == CUDAMEM_ERROR_REENTERED;
    *refused += cudamem_suballoc(self, 1, 0, NULL, NULL) == CUDAMEM_ERROR_REENTERED;
    *refused += cudamem_subfree(self, NULL) == CUDAMEM_ERROR_REENTERED;
    *refused += cudamem_host_free(self, NULL) == CUDAMEM_ERROR_REENTERED;
    *refused += cudamem_host_empty_cache(NULL) == CUDAMEM_ERROR_REENTERED;
    *refused += cudamem_mem_get_info(0, NULL, NULL, NULL) == CUDAMEM_ERROR_REENTERED;
}

static void within_a_tracker_they_are_refused(void **state)
{
    (void)state;
    int refused = 0;
    uint64_t id;
    RECORD(.max_entries = 0);
    assert_int_equal(cudamem_attach_trace_tracker(try_everything, &refused, &id, NULL), CUDAMEM_OK);
    give(take(1000, 0)); /* four events */
    assert_int_equal(cudamem_detach(id, NULL), CUDAMEM_OK);
    assert_int_equal(refused, 4 * 10);
}

static void a_snapshot_that_fails_leaves_nothing(void **state)
{
    (void)state;
    cudamem_snapshot *snapshot;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    RECORD(.max_entries = 0);
    void *pointer = take(1000, 0);
    world_fail("cuDeviceGetCount", "999");
    assert_int_equal(cudamem_memory_snapshot(NULL, &snapshot, &error), CUDAMEM_ERROR_DRIVER);
    assert_null(snapshot);
    assert_non_null(strstr(error.message, "CUDA_ERROR_UNKNOWN"));
    world_fail("cuDeviceGetCount", "4"); /* it has shut down */
    assert_int_equal(cudamem_dump_snapshot(NULL, &error), CUDAMEM_ERROR_SHUT_DOWN);
    assert_int_not_equal(access("dump_snapshot.pickle", F_OK), 0);
    snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 1);
    cudamem_snapshot_close(snapshot);
    give(pointer);
}

static void a_request_that_fails_is_an_entry_with_its_stack(void **state)
{
    (void)state;
    void *pointer;
    RECORD(.max_entries = 0);
    assert_int_equal(world.faults("cuMemAlloc_v2:1=oom,cuMemAlloc_v2:2=oom"), 0); /* and after the flush again */
    assert_int_equal(cudamem_alloc(3 * MIB, 0, NULL, &pointer, NULL), CUDAMEM_ERROR_OUT_OF_MEMORY);
    cudamem_snapshot *snapshot = snapshot_now();
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 1);
    cudamem_entry entry = entry_at(snapshot, 0);
    assert_int_equal(entry.action, CUDAMEM_ACTION_OOM);
    assert_int_equal(entry.size, 3 * MIB);
    assert_true(entry.address > 0); /* what the device had free */
    assert_true(shows(snapshot, entry.context, "a_request_that_fails_is_an_entry_with_its_stack"));
    cudamem_snapshot_close(snapshot);
}

static void the_older_form_means_what_it_meant(void **state)
{
    (void)state;
    static const struct {
        int record_context, trace_record_context, cpp;
        int context, stacks;
    } forms[] = {{1, 0, 0, CUDAMEM_CONTEXT_STATE, CUDAMEM_STACKS_PYTHON},
                 {0, 0, 0, CUDAMEM_CONTEXT_NONE, CUDAMEM_STACKS_PYTHON},
                 {1, 1, 1, CUDAMEM_CONTEXT_ALLOC, CUDAMEM_STACKS_ALL},
                 {0, 1, 0, CUDAMEM_CONTEXT_ALLOC, CUDAMEM_STACKS_PYTHON}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        cudamem_history_options options = cudamem_history_legacy(1, forms[i].record_context, 5,
                                                                 forms[i].trace_record_context, -1, forms[i].cpp, 1, 0, 1);
        assert_int_equal(options.enabled, CUDAMEM_HISTORY_ALL);
        assert_int_equal(options.context, forms[i].context);
        assert_int_equal(options.stacks, forms[i].stacks);
        assert_int_equal(options.max_entries, 5);
        assert_int_equal(options.clear_history, 1);
        assert_int_equal(options.annotations, 1);
        assert_int_equal(cudamem_record_memory_history(&options, NULL), CUDAMEM_OK);
    }
    assert_int_equal(cudamem_history_legacy(0, 1, 1, 0, -1, 0, 0, 0, 0).enabled, CUDAMEM_HISTORY_NONE);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    const cudamem_history_options wrong[] = {
        {.struct_size = sizeof(wrong[0]), .enabled = 3},    {.struct_size = sizeof(wrong[0]), .context = -1},
        {.struct_size = sizeof(wrong[0]), .stacks = 2},     {.struct_size = sizeof(wrong[0]), .skip_actions = 1u << 9},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(cudamem_record_memory_history(&wrong[i], &error), CUDAMEM_ERROR_USAGE);
        assert_non_null(strstr(error.message, i < 3 ? "expected" : "action"));
    }
    assert_int_equal(cudamem_memory_snapshot(NULL, NULL, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_annotation_begin(NULL, 0, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_annotation_begin("x", 64, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_history_lost(0, NULL, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_dump_snapshot("/nowhere/at/all.pickle", &error), CUDAMEM_ERROR_OUTPUT);
}

static void a_pools_snapshot_has_its_segments_and_entries_only(void **state)
{
    (void)state;
    cudamem_pool *pool;
    cudamem_snapshot *snapshot;
    RECORD(.max_entries = 0);
    void *outside = take(1000, 0);
    assert_int_equal(cudamem_pool_create(NULL, 0, &pool, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_pool_begin(pool, 0, NULL), CUDAMEM_OK);
    void *inside = take(5 * MIB, 0);
    assert_int_equal(cudamem_pool_end(pool, 0, NULL), CUDAMEM_OK);
    cudamem_pool_id id = cudamem_pool_get_id(pool);
    cudamem_memory_snapshot_options options = {.struct_size = sizeof(options), .has_pool = 1};
    memcpy(options.pool, &id, sizeof(options.pool));
    assert_int_equal(cudamem_memory_snapshot(&options, &snapshot, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 1);
    assert_int_equal(block_of(snapshot, inside).requested_size, 5 * MIB);
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 2);
    cudamem_snapshot_close(snapshot);
    options.without_traces = 1;
    assert_int_equal(cudamem_memory_snapshot(&options, &snapshot, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 1);
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 0);
    cudamem_snapshot_close(snapshot);
    options.pool[1] += 1000;
    assert_int_equal(cudamem_memory_snapshot(&options, &snapshot, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 0);
    cudamem_snapshot_close(snapshot);
    assert_int_equal(cudamem_pool_snapshot(pool, 1, &snapshot, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 1);
    size_t marks = 0;
    for (size_t i = 0; i < cudamem_snapshot_entry_count(snapshot); i++)
        marks += entry_at(snapshot, i).action == CUDAMEM_ACTION_SNAPSHOT;
    assert_true(marks >= 2); /* of the first two */
    assert_int_equal(cudamem_snapshot_entry_count(snapshot) - marks, 2);
    cudamem_snapshot_close(snapshot);
    assert_int_equal(cudamem_pool_snapshot(pool, 0, &snapshot, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 0);
    cudamem_snapshot_close(snapshot);
    assert_int_equal(cudamem_pool_snapshot(NULL, 0, &snapshot, NULL), CUDAMEM_ERROR_USAGE);
    give(outside);
    give(inside);
    assert_int_equal(cudamem_pool_destroy(pool, NULL), CUDAMEM_OK);
}

/* --- files ------------------------------------------------------------------------------------------------------------ */

static char folder[] = "/tmp/cudamem-history-XXXXXX";

static bool file_has(const char *name, const char *text)
{
    char content[200000];
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    size_t length = fread(content, 1, sizeof(content), file);
    fclose(file);
    return memmem(content, length, text, strlen(text)) != NULL;
}

static void a_dump_opens_again_and_says_the_same(void **state)
{
    (void)state;
    static const char *const names[] = {NULL, "other.bin", "other.pickle"};
    RECORD(.annotations = 1);
    assert_int_equal(cudamem_annotation_begin("forward", -1, NULL), CUDAMEM_OK);
    void *pointer = allocating_function(1000, 0);
    assert_int_equal(cudamem_annotation_end("forward", -1, NULL), CUDAMEM_OK);
    for (size_t i = 0; i < 3; i++) {
        cudamem_snapshot *now = snapshot_now(), *again = NULL;
        cudamem_error error = CUDAMEM_ERROR_INIT;
        const char *name = names[i] ? names[i] : "dump_snapshot.pickle";
        if (cudamem_dump_snapshot(names[i], &error) || cudamem_snapshot_open(name, NULL, &again, &error))
            fail_msg("%s", error.message);
        assert_true(cudamem_snapshot_entry_count(again) >= cudamem_snapshot_entry_count(now));
        assert_int_equal(cudamem_snapshot_segment_count(again), 1);
        assert_true(shows(again, block_of(again, pointer).context, "allocating_function"));
        assert_true(entry_at(again, 0).address == entry_at(now, 0).address);
        /* The clock is looked at anew for each snapshot. */
        assert_true(llabs(entry_at(again, 0).time_us - entry_at(now, 0).time_us) < 1000);
        if (i != 1)
            assert_true(file_has(name, "forward"));
        cudamem_snapshot_close(now);
        cudamem_snapshot_close(again);
        unlink(name);
    }
    give(pointer);
}

static void annotations_are_kept_only_where_asked_for(void **state)
{
    (void)state;
    RECORD(.annotations = 0);
    assert_int_equal(cudamem_annotation_begin("unheard", 0, NULL), CUDAMEM_OK);
    give(take(100, 0));
    assert_int_equal(cudamem_dump_snapshot(NULL, NULL), CUDAMEM_OK);
    assert_false(file_has("dump_snapshot.pickle", "unheard"));
    RECORD(.annotations = 1, .max_entries = 4);
    char name[16];
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "part%d", i);
        assert_int_equal(cudamem_annotation_begin(name, 0, NULL), CUDAMEM_OK);
    }
    assert_int_equal(cudamem_dump_snapshot(NULL, NULL), CUDAMEM_OK);
    assert_false(file_has("dump_snapshot.pickle", "part1")); /* they are a ring, too */
    assert_true(file_has("dump_snapshot.pickle", "part2"));
    assert_true(file_has("dump_snapshot.pickle", "part5"));
    unlink("dump_snapshot.pickle");
}

static void pictures_come_straight_from_the_library(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    RECORD(.enabled = CUDAMEM_HISTORY_STATE);
    void *pointer = allocating_function(1 << 20, 0);
    assert_int_equal(cudamem_save_segment_usage(NULL, NULL, &error), CUDAMEM_OK);
    assert_true(file_has("output.svg", "<svg"));
    assert_true(file_has("output.svg", "allocating_function"));
    assert_true(file_has("output.svg", "1 segment"));
    unlink("output.svg");
    cudamem_snapshot *snapshot = snapshot_now();
    give(pointer);
    assert_int_equal(cudamem_save_memory_usage("memory.svg", snapshot, &error), CUDAMEM_OK); /* as it was then */
    assert_true(file_has("memory.svg", "allocating_function"));
    cudamem_snapshot_close(snapshot);
    unlink("memory.svg");
    assert_int_equal(cudamem_save_memory_usage("/nowhere/at/all.svg", NULL, &error), CUDAMEM_ERROR_OUTPUT);
}

/* --- threads ---------------------------------------------------------------------------------------------------------- */

static void *work(void *argument)
{
    int device = *(int *)argument;
    for (size_t i = 0; i < 3000; i++)
        give(allocating_function(512 + i, device));
    return NULL;
}

/* libunwind gives its memory back when a thread ends, after the thread sanitizer did. */
#ifdef __SANITIZE_THREAD__
#define STACKS CUDAMEM_STACKS_PYTHON
#else
#define STACKS CUDAMEM_STACKS_ALL
#endif

static void threads_record_while_others_look(void **state)
{
    (void)state;
    pthread_t threads[4];
    int devices[4] = {0, 1, 0, 1};
    RECORD(.max_entries = 5000, .stacks = STACKS);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &devices[i]), 0);
    for (int i = 0; i < 10; i++) {
        cudamem_snapshot_close(snapshot_now());
        RECORD(.max_entries = 5000, .clear_history = i % 2, .stacks = STACKS,
               .context = i % 3 ? CUDAMEM_CONTEXT_ALL : CUDAMEM_CONTEXT_NONE);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    RECORD(.max_entries = 5000, .stacks = STACKS);
    give(allocating_function(512, 0)); /* what was there before may be cleared */
    cudamem_snapshot *snapshot = snapshot_now();
    size_t named = 0, count = cudamem_snapshot_entry_count(snapshot);
    assert_true(count > 0 && count <= 10000);
    for (size_t i = count > 100 ? count - 100 : 0; i < count; i++)
        named += shows(snapshot, entry_at(snapshot, i).context, "allocating_function");
    assert_true(named > 0 || STACKS == CUDAMEM_STACKS_PYTHON);
    cudamem_snapshot_close(snapshot);
}

static void *look(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) {
        cudamem_snapshot_close(snapshot_now());
        RECORD(.max_entries = 100, .annotations = 1, .stacks = STACKS);
        assert_int_equal(cudamem_annotation_begin("there", 0, NULL), CUDAMEM_OK);
    }
    return NULL;
}

static void who_keeps_the_allocators_still_may_look(void **state)
{
    (void)state;
    pthread_t thread;
    void *pointer = take(1000, 0);
    RECORD(.max_entries = 100, .annotations = 1, .stacks = STACKS);
    assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(cudamem_free_mutex_lock(NULL), CUDAMEM_OK);
        cudamem_snapshot_close(snapshot_now());
        assert_int_equal(cudamem_annotation_begin("here", 0, NULL), CUDAMEM_OK);
        RECORD(.max_entries = 100, .annotations = 1, .stacks = STACKS);
        assert_int_equal(cudamem_suballoc(pointer, 100, 0, NULL, NULL), CUDAMEM_OK);
        assert_int_equal(cudamem_subfree(pointer, NULL), CUDAMEM_OK);
        void *host = NULL;
        assert_int_equal(cudamem_host_alloc(100, &host, NULL), CUDAMEM_OK);
        assert_int_equal(cudamem_host_free(host, NULL), CUDAMEM_OK);
        assert_int_equal(cudamem_free_mutex_unlock(NULL), CUDAMEM_OK);
    }
    pthread_join(thread, NULL);
    give(pointer);
    assert_int_equal(cudamem_host_empty_cache(NULL), CUDAMEM_OK);
}

/* Whatever other threads were in the midst of, a child can go on. */
static void a_forked_child_is_not_stuck(void **state)
{
    (void)state;
    pthread_t threads[2];
    int devices[2] = {0, 1}, status;
    RECORD(.max_entries = 1000, .stacks = STACKS);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &devices[i]), 0);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (!child) {
            cudamem_snapshot *snapshot = NULL;
            const cudamem_history_options off = {.struct_size = sizeof(off), .enabled = CUDAMEM_HISTORY_NONE};
            alarm(60);
            cudamem_memory_snapshot(NULL, &snapshot, NULL); /* the driver may refuse */
            cudamem_snapshot_close(snapshot);
            _exit(cudamem_record_memory_history(&off, NULL) == CUDAMEM_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static volatile sig_atomic_t handled;

static void allocate_in_handler(int number)
{
    void *pointer = NULL;
    (void)number;
    if (!cudamem_alloc(1000, 0, NULL, &pointer, NULL)) /* refused where it came in between */
        cudamem_free(pointer, NULL);
    handled++;
}

static void signal_handlers_may_come_at_any_time(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = allocate_in_handler, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    uint64_t bytes;
    RECORD(.max_entries = 1000, .stacks = STACKS);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (size_t i = 0; handled < 100; i++)
        give(allocating_function(512 + i % 1000, 0));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(cudamem_memory_allocated(0, &bytes, NULL), CUDAMEM_OK);
    assert_int_equal(bytes, 0);
    cudamem_snapshot_close(snapshot_now());
}

static int leave_folder(void **state)
{
    (void)state;
    RECORD(.enabled = CUDAMEM_HISTORY_NONE);
    assert_int_equal(cudamem_empty_cache(NULL), CUDAMEM_OK);
    return chdir("/") || rmdir(folder);
}

int main(void)
{
    world_open("2:4GiB");
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_first_use_it_is_empty),
        cmocka_unit_test_setup(by_default_everything_is_kept_with_stacks_of_both_ends, begin),
        cmocka_unit_test_setup(two_calls_with_equal_stacks_are_two_contexts, begin),
        cmocka_unit_test_setup(contexts_are_kept_as_far_as_asked_for, begin),
        cmocka_unit_test_setup(python_stacks_of_a_program_without_python_are_empty, begin),
        cmocka_unit_test_setup(the_ring_keeps_the_newest_of_each_device, begin),
        cmocka_unit_test_setup(a_ring_that_shrinks_or_grows_keeps_the_newest_in_order, begin),
        cmocka_unit_test_setup(state_keeps_one_entry_and_the_stacks_of_what_lives, begin),
        cmocka_unit_test_setup(ending_forgets_and_clearing_begins_anew, begin),
        cmocka_unit_test_setup(skipped_actions_make_no_entries, begin),
        cmocka_unit_test_setup(a_snapshot_is_an_entry_of_the_next_one, begin),
        cmocka_unit_test_setup(trackers_hear_of_snapshots_recorded_or_not, begin),
        cmocka_unit_test_setup(within_a_tracker_they_are_refused, begin),
        cmocka_unit_test_setup(a_snapshot_that_fails_leaves_nothing, begin),
        cmocka_unit_test_setup(a_request_that_fails_is_an_entry_with_its_stack, begin),
        cmocka_unit_test_setup(the_older_form_means_what_it_meant, begin),
        cmocka_unit_test_setup(nonsense_is_refused, begin),
        cmocka_unit_test_setup(a_pools_snapshot_has_its_segments_and_entries_only, begin),
        cmocka_unit_test_setup(a_dump_opens_again_and_says_the_same, begin),
        cmocka_unit_test_setup(annotations_are_kept_only_where_asked_for, begin),
        cmocka_unit_test_setup(pictures_come_straight_from_the_library, begin),
        cmocka_unit_test_setup(threads_record_while_others_look, begin),
        cmocka_unit_test_setup(who_keeps_the_allocators_still_may_look, begin),
        cmocka_unit_test_setup(a_forked_child_is_not_stuck, begin),
        cmocka_unit_test_setup(signal_handlers_may_come_at_any_time, begin),
    };
    return cmocka_run_group_tests(tests, NULL, leave_folder);
}
