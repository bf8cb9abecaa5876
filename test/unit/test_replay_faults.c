/* Replay of recordings that are not whole or not right: changed entries, contradictions, lost beginnings, moments. */
#include "analyze/replay.h"
#include "base/array.h"
#include "format/format.h"
#include "snapshot/state.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FRAG_LIMIT UINT64_C(4503296409)
#define PRESSURE_LIMIT UINT64_C(3002197606)
#define SAMPLES 60 /* entries changed, a file */

static const struct file {
    const char *name;
    uint64_t limit;
} files[] = {
    {"train", REPLAY_NO_LIMIT}, {"train_cpp", REPLAY_NO_LIMIT}, {"expandable_mid", REPLAY_NO_LIMIT},
    {"expandable", REPLAY_NO_LIMIT}, {"frag", FRAG_LIMIT}, {"frag_seed11", FRAG_LIMIT}, {"frag_seed13", FRAG_LIMIT},
    {"frag_conf", FRAG_LIMIT}, {"leak_before", REPLAY_NO_LIMIT}, {"leak_after", REPLAY_NO_LIMIT},
    {"kvcache", REPLAY_NO_LIMIT}, {"resnet", REPLAY_NO_LIMIT}, {"whatif", REPLAY_NO_LIMIT},
    {"pressure", PRESSURE_LIMIT}, {"graphs", REPLAY_NO_LIMIT}, {"mempool", REPLAY_NO_LIMIT},
    {"mempool_oom", REPLAY_NO_LIMIT}, {"mempool_end", REPLAY_NO_LIMIT}, {"replay/special", REPLAY_NO_LIMIT},
    {"replay/pools", REPLAY_NO_LIMIT},
};
#define FILES (sizeof(files) / sizeof(files[0]))

static struct snapshot *load_part(const char *name, uint64_t first, uint64_t last)
{
    struct format_options options = FORMAT_OPTIONS_ALL;
    char path[600];
    struct snapshot *snapshot;
    struct error err;
    options.first_entry = first;
    options.last_entry = last;
    snprintf(path, sizeof(path), "%s/%s.pickle.gz", TEST_DATA, name);
    if (format_read(path, &options, &snapshot, &err))
        fail_msg("%s: %s", path, err.message);
    return snapshot;
}

static struct snapshot *load_from(const char *name, uint64_t first)
{
    return load_part(name, first, UINT64_MAX);
}

static struct replay_result run(const struct snapshot *snapshot, const struct replay_options *options)
{
    struct replay_result result;
    struct error err;
    if (replay_run(snapshot, options, &result, &err))
        fail_msg("%s", err.message);
    return result;
}

/* Is the changed entry the one that is named?  The free of another block that is there is only refuted by its end. */
static bool is_named(const struct snapshot *snapshot, const struct replay_result *result, size_t changed)
{
    if (result->exact || !result->difference[0])
        return false;
    return result->difference_entry == changed || (snapshot->entries.action[changed] == ACTION_FREE_REQUESTED &&
                                                   result->difference_entry == changed + 1);
}

/* Is an entry with a changed size found, there or later?  The segment of the same call stands before its request. */
static bool is_found(const struct snapshot *snapshot, const struct replay_result *result, size_t changed)
{
    bool same_call = snapshot->entries.action[changed] == ACTION_ALLOC && result->difference_entry + 1 == changed;
    return !result->exact && (result->difference_entry >= changed || same_call);
}

/* Changes entries of every file, one at a time, and asks the judge about each; how many were missed. */
static int missed_changes(bool sizes, bool (*judge)(const struct snapshot *, const struct replay_result *, size_t))
{
    int missed = 0;
    for (size_t i = 0; i < FILES; i++) {
        struct snapshot *snapshot = load_from(files[i].name, 0);
        struct replay_options options = {.moment = snapshot->entries.count, .limit = files[i].limit};
        size_t count = snapshot->entries.count, step = count / SAMPLES + 1;
        for (size_t k = sizes ? step / 3 : step / 2; k < count; k += step) {
            enum action action = (enum action)snapshot->entries.action[k];
            if (!sizes && (action == ACTION_OOM || action == ACTION_SNAPSHOT))
                continue;
            uint64_t *changed = sizes ? &snapshot->entries.size[k] : &snapshot->entries.address[k], change = sizes ? 1 : 512;
            *changed += change;
            struct replay_result result = run(snapshot, &options);
            *changed -= change;
            if (!judge(snapshot, &result, k) && missed++ < 10)
                fprintf(stderr, "%s: entry %zu (%s): named %" PRIu64 " %s\n", files[i].name, k, action_name(action),
                        result.difference_entry, result.difference);
        }
        snapshot_free(snapshot);
    }
    return missed;
}

static void a_changed_address_in_any_file_is_found_and_named(void **state)
{
    (void)state;
    assert_int_equal(missed_changes(false, is_named), 0);
}

static void a_changed_size_in_any_file_is_found(void **state)
{
    (void)state;
    assert_int_equal(missed_changes(true, is_found), 0);
}

/* --- contradictions --------------------------------------------------------------------------------------------- */

static void add(struct snapshot *snapshot, enum action action, uint64_t address, uint64_t size)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = action;
    entry.address = address;
    entry.size = size;
    assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
}

static void contradictions_are_counted_by_kind_and_left_out(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_RMM);
    add(snapshot, ACTION_ALLOC, 0x10000, 4096);
    add(snapshot, ACTION_ALLOC, 0x10800, 4096);         /* over the first */
    add(snapshot, ACTION_FREE_REQUESTED, 0x10800, 4096); /* its end goes with it */
    add(snapshot, ACTION_FREE_COMPLETED, 0x10800, 4096);
    add(snapshot, ACTION_FREE_REQUESTED, 0x90000, 1);   /* of nothing */
    add(snapshot, ACTION_FREE_COMPLETED, 0x90000, 1);
    add(snapshot, ACTION_ALLOC, 0x20000, UINT64_MAX);   /* wraps */
    add(snapshot, ACTION_ALLOC, UINT64_MAX - 4096, 1 << 20);
    add(snapshot, ACTION_ALLOC, 0xf000, 4097);          /* reaches into the first */
    add(snapshot, ACTION_FREE_REQUESTED, 0x10000, 4096);
    add(snapshot, ACTION_FREE_COMPLETED, 0x10000, 4096);
    add(snapshot, ACTION_FREE_REQUESTED, 0x10000, 4096); /* again */
    add(snapshot, ACTION_ALLOC, 0x10800, 4096);         /* nothing is there now */
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT, .conf = ""};
    struct replay_result result = run(snapshot, &options);
    assert_int_equal(result.contradictions.counts[REPLAY_OVERLAP], 2);
    assert_int_equal(result.contradictions.first[REPLAY_OVERLAP], 1);
    assert_int_equal(result.contradictions.counts[REPLAY_UNKNOWN_FREE], 3);
    assert_int_equal(result.contradictions.first[REPLAY_UNKNOWN_FREE], 4);
    assert_int_equal(result.contradictions.counts[REPLAY_SENSELESS], 2);
    assert_int_equal(result.contradictions.first[REPLAY_SENSELESS], 6);
    const struct memory_stat *allocation = &result.stats.kinds[MEMORY_STAT_ALLOCATION][MEMORY_POOL_ALL];
    assert_int_equal(allocation->allocated, 2);
    assert_int_equal(allocation->current, 1);
    snapshot_free(snapshot);
}

/* --- lost beginnings and moments -------------------------------------------------------------------------------- */

static void a_lost_beginning_is_rebuilt_and_called_approximate(void **state)
{
    (void)state;
    static const enum memory_stat_kind kinds[] = {MEMORY_STAT_ALLOCATION, MEMORY_STAT_SEGMENT, MEMORY_STAT_RESERVED_BYTES,
                                                  MEMORY_STAT_REQUESTED_BYTES};
    static const char *const names[] = {"whatif", "train", "kvcache", "resnet", "expandable_mid"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct snapshot *whole = load_from(names[i], 0);
        struct replay_options options = {.moment = whole->entries.count, .limit = REPLAY_NO_LIMIT};
        struct replay_result all = run(whole, &options);
        struct snapshot *part = load_from(names[i], whole->entries.count / 3);
        options.moment = part->entries.count;
        for (int conf = 0; conf < 2; conf++) {
            options.conf = conf ? "roundup_power2_divisions:4" : NULL;
            struct replay_result rest = run(part, &options);
            assert_true(rest.approximate);
            assert_false(rest.exact);
            assert_int_equal(rest.contradictions.counts[REPLAY_UNKNOWN_FREE], 0);
            for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
                if (!conf || kinds[k] == MEMORY_STAT_ALLOCATION || kinds[k] == MEMORY_STAT_REQUESTED_BYTES)
                    assert_int_equal(rest.stats.kinds[kinds[k]][MEMORY_POOL_ALL].current,
                                     all.stats.kinds[kinds[k]][MEMORY_POOL_ALL].current);
        }
        snapshot_free(part);
        snapshot_free(whole);
    }
}

static int compare_current(const struct memory_stats *one, const struct memory_stats *other)
{
    int differing = 0;
    for (int kind = 0; kind < MEMORY_STAT_INACTIVE_SPLIT; kind++)
        for (int pool = 0; pool < MEMORY_POOL_CLASSES; pool++)
            differing += one->kinds[kind][pool].current != other->kinds[kind][pool].current;
    return differing;
}

/* The statistics of a moment are those of a recording that ends there. */
static void statistics_of_a_moment_are_those_of_a_shorter_recording(void **state)
{
    (void)state;
    struct snapshot *snapshot = load_from("frag", 0);
    struct statistics_list list;
    struct error err;
    struct replay_options options = {.limit = FRAG_LIMIT, .moment = snapshot->entries.count};
    struct memory_stats peak_so_far = {0};
    for (uint64_t moment = 500; moment <= snapshot->entries.count; moment += 1777) {
        struct statistics statistics = {0};
        struct state before;
        assert_int_equal(replay_statistics(&options, snapshot, moment, &statistics, &err), 0);
        assert_int_equal(statistics.bounds.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].peak, STATISTICS_EXACT);
        assert_int_equal(state_at(snapshot, moment, &before, &err), 0);
        assert_int_equal(statistics_collect(snapshot, &before, NULL, NULL, &list, &err), 0);
        assert_int_equal(statistics.values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].current,
                         list.items[0].values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].current);
        assert_int_equal(statistics.values.kinds[MEMORY_STAT_ALLOCATION][MEMORY_POOL_ALL].current,
                         list.items[0].values.kinds[MEMORY_STAT_ALLOCATION][MEMORY_POOL_ALL].current);
        assert_true(statistics.values.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak >=
                    peak_so_far.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak);
        peak_so_far = statistics.values;
        statistics_free(&list);
        state_free(&before);
    }
    struct statistics end = {0};
    assert_int_equal(replay_statistics(&options, snapshot, snapshot->entries.count, &end, &err), 0);
    assert_int_not_equal(compare_current(&end.values, &(struct memory_stats){0}), 0);
    snapshot_free(snapshot);
}

/* Segments that were there before stay clear of those that are placed, however the two lie. */
static void without_its_segments_a_recording_is_replayed_from_the_rebuilt_state(void **state)
{
    (void)state;
    static const struct {
        const char *conf;
        uint64_t limit;
    } cases[] = {{"roundup_power2_divisions:[8:0,16:16,>:16]", 1846542336}, {"roundup_power2_divisions:[8:2,16:2,>:0]", 1919942656},
                 {"max_split_size_mb:33", 1000000000}, {"", REPLAY_NO_LIMIT}};
    struct snapshot *snapshot = load_from("pressure", 0);
    for (size_t i = 0; i < snapshot->entries.count; i++)
        if (snapshot->entries.action[i] >= ACTION_SEGMENT_ALLOC && snapshot->entries.action[i] <= ACTION_SEGMENT_UNMAP)
            snapshot->entries.flags[i] |= ENTRY_FAILED;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct replay_options options = {.moment = snapshot->entries.count, .limit = cases[i].limit, .conf = cases[i].conf};
        struct replay_result result = run(snapshot, &options);
        assert_true(result.approximate && result.lost_beginning);
    }
    snapshot_free(snapshot);
}

static void a_request_that_failed_is_no_memory_in_use(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    add(snapshot, ACTION_SEGMENT_ALLOC, 0x7f0000000000, 2 << 20);
    add(snapshot, ACTION_ALLOC, 0x7f0000000000, 4096);
    add(snapshot, ACTION_OOM, 1 << 30, UINT64_C(80) << 30);
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT};
    static const char *const confs[] = {NULL, "", "expandable_segments:True"};
    for (size_t i = 0; i < 3; i++) {
        options.conf = confs[i];
        struct replay_result result = run(snapshot, &options);
        assert_int_equal(result.stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak, 2 << 20);
        assert_int_equal(result.ooms, 1);
        assert_int_equal(result.first_oom, 2);
    }
    snapshot_free(snapshot);
}

static const uint64_t moments[] = {97, 500, 3000, 3846, 6000};
#define MOMENTS (sizeof(moments) / sizeof(moments[0]))

static void all_numbers_of_a_moment_are_those_of_a_recording_that_ends_there(void **state)
{
    (void)state;
    struct snapshot *whole = load_from("frag", 0);
    for (size_t i = 0; i < MOMENTS; i++) {
        struct replay_options options = {.moment = moments[i], .limit = REPLAY_NO_LIMIT};
        struct snapshot *part = load_part("frag", 0, moments[i]);
        struct replay_result there = run(whole, &options), alone = run(part, &options);
        assert_int_equal(there.rounding_waste, alone.rounding_waste);
        assert_int_equal(there.fragmentation_waste, alone.fragmentation_waste);
        assert_int_equal(there.ooms, alone.ooms);
        assert_int_equal(there.ooms > 0, moments[i] > 3845);
        assert_int_equal(there.first_oom, alone.first_oom);
        assert_memory_equal(&there.stats, &alone.stats, sizeof(alone.stats));
        snapshot_free(part);
    }
    snapshot_free(whole);
}

/* Of a recording that was cut at a moment the sizes of blocks are not known until it is replayed. */
static void an_end_that_was_rebuilt_is_mended_by_the_replay(void **state)
{
    (void)state;
    struct error err;
    size_t guessed_wrong = 0;
    for (size_t i = 0; i < MOMENTS; i++) {
        struct replay_options options = {.moment = moments[i], .limit = REPLAY_NO_LIMIT};
        struct snapshot *part = load_part("frag", 0, moments[i]);
        struct replay_result result = run(part, &options);
        assert_true(result.exact && result.rebuilt_end);
        part->end.exact = true; /* as if it were known: now it counts */
        guessed_wrong += !run(part, &options).exact;
        part->end.exact = false;
        assert_int_equal(replay_mend_end(part, &err), 0);
        assert_true(part->end.exact && snapshot_is_valid(part, &err));
        result = run(part, &options);
        assert_true(result.exact && !result.rebuilt_end);
        snapshot_free(part);
    }
    assert_true(guessed_wrong > 0);
}

/* The same process wrote both files. */
static void a_mended_end_is_what_was_there_at_the_moment(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"leak_before", "leak_after"}, {"expandable_mid", "expandable"}};
    struct error err;
    for (size_t i = 0; i < 2; i++) {
        struct snapshot *early = load_from(pairs[i][0], 0), *part = load_part(pairs[i][1], 0, early->entries.count);
        part->end.exact = false; /* nothing had to be guessed here: all of it once more */
        for (size_t b = 0; b < part->end.block_count; b++)
            part->end.blocks[b].size ^= part->end.blocks[b].state == BLOCK_ACTIVE_ALLOCATED ? 512 : 0;
        assert_int_equal(replay_mend_end(part, &err), 0);
        assert_true(part->end.exact);
        assert_int_equal(part->end.segment_count, early->end.segment_count);
        assert_int_equal(part->end.block_count, early->end.block_count);
        uint64_t sums[2] = {0};
        for (size_t b = 0; b < part->end.block_count; b++) {
            sums[0] += part->end.blocks[b].size * (part->end.blocks[b].address ^ part->end.blocks[b].state);
            sums[1] += early->end.blocks[b].size * (early->end.blocks[b].address ^ early->end.blocks[b].state);
        }
        assert_int_equal(sums[0], sums[1]);
        snapshot_free(part);
        snapshot_free(early);
    }
}

static void a_rebuilt_end_still_refutes(void **state)
{
    (void)state;
    struct replay_options options = {.moment = 3000, .limit = REPLAY_NO_LIMIT};
    struct snapshot *part = load_part("frag", 0, 3000);
    struct block *block = part->end.blocks;
    while (block->state != BLOCK_ACTIVE_ALLOCATED)
        block++;
    block->requested++;
    assert_false(run(part, &options).exact);
    block->requested--;
    part->end.segments[3].stream++;
    assert_false(run(part, &options).exact);
    part->end.segments[3].stream--;
    assert_true(run(part, &options).exact);
    snapshot_free(part);
}

static void a_limit_that_the_recording_refutes_is_left_out_of_account(void **state)
{
    (void)state;
    struct snapshot *snapshot = load_from("frag", 0);
    struct replay_options options = {.limit = UINT64_C(1) << 30};
    struct statistics refuted = {0}, told = {0};
    struct error err;
    assert_int_equal(replay_statistics(&options, snapshot, snapshot->entries.count, &refuted, &err), 0);
    options.limit = FRAG_LIMIT;
    assert_int_equal(replay_statistics(&options, snapshot, snapshot->entries.count, &told, &err), 0);
    assert_true(refuted.refutes_limit);
    assert_false(told.refutes_limit);
    assert_memory_equal(&refuted.values, &told.values, sizeof(told.values));
    assert_int_equal(refuted.bounds.num_alloc_retries, STATISTICS_AT_LEAST);
    assert_int_equal(told.bounds.num_alloc_retries, STATISTICS_EXACT);
    snapshot_free(snapshot);
}

static void what_is_said_of_pools_that_nothing_went_to_is_named(void **state)
{
    (void)state;
    static const struct replay_pool_option pools[] = {{.first = 7, .second = 9, .no_split = true}, {.first = 0, .second = 1}};
    static const struct replay_scope_option scopes[] = {{.first = 7, .second = 8, .from = 6, .to = 6}};
    struct snapshot *snapshot = load_from("mempool", 0);
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT, .pools = pools,
                                     .pool_count = 2, .scopes = scopes, .scope_count = 1};
    assert_int_not_equal(snapshot->entries.action[scopes[0].from], ACTION_ALLOC);
    struct replay_result result = run(snapshot, &options);
    assert_string_equal(result.idle, "--pool 7:9, --scope 7:8");
    options.pool_count = options.scope_count = 0;
    assert_string_equal(run(snapshot, &options).idle, "");
    snapshot_free(snapshot);
}

static void collections_without_a_limit_ask_for_it(void **state)
{
    (void)state;
    struct snapshot *snapshot = load_from("frag_conf", 0);
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT};
    assert_true(run(snapshot, &options).lacks_limit);
    options.limit = FRAG_LIMIT;
    assert_false(run(snapshot, &options).lacks_limit);
    snapshot_free(snapshot);
}

static void a_memory_fraction_in_the_settings_is_a_limit(void **state)
{
    (void)state;
    struct snapshot *snapshot = load_from("train", 0);
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT,
                                     .conf = "per_process_memory_fraction:0.004"};
    struct replay_result result = run(snapshot, &options);
    assert_true(result.stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak <= 600439521);
    assert_true(result.ooms > 0);
    snapshot_free(snapshot);
}

static void numbers_are_of_the_whole_recording_where_following_it_ends(void **state)
{
    (void)state;
    struct snapshot *snapshot = load_from("train", 0);
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT};
    struct replay_result whole = run(snapshot, &options);
    for (size_t i = 0; i < snapshot->entries.count; i++)
        if (snapshot->entries.action[i] == ACTION_FREE_COMPLETED)
            snapshot->entries.flags[i] |= ENTRY_FAILED; /* as if they had not been recorded */
    struct replay_result result = run(snapshot, &options);
    assert_false(result.exact);
    assert_true(result.difference[0] != '\0');
    assert_int_equal(result.stats.kinds[MEMORY_STAT_ALLOCATION][MEMORY_POOL_ALL].allocated,
                     whole.stats.kinds[MEMORY_STAT_ALLOCATION][MEMORY_POOL_ALL].allocated);
    assert_int_equal(result.stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak,
                     whole.stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak);
    snapshot_free(snapshot);
}

/* --- private pools ---------------------------------------------------------------------------------------------- */

#define MIB (UINT64_C(1) << 20)

static void add_segment(struct snapshot *snapshot, uint64_t address, uint64_t size)
{
    struct segment segment = {.address = address, .total_size = size, .context = CONTEXT_NONE,
                              .pool = snapshot_pool(snapshot, 0, 0), .is_large = size > 2 * MIB};
    assert_int_equal(state_add_segment(&snapshot->end, &segment), 0);
}

static void add_block(struct snapshot *snapshot, uint64_t address, uint64_t size, uint64_t requested, enum block_state is)
{
    struct block block = {.address = address, .size = size, .requested = requested, .context = CONTEXT_NONE,
                          .state = (uint8_t)is};
    assert_int_equal(state_add_block(&snapshot->end, &block), 0);
}

/* A second small segment is opened although the first has room, used for one block, and given back. */
static struct snapshot *unknown_pool(void)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    assert_non_null(snapshot);
    add(snapshot, ACTION_SEGMENT_ALLOC, 0x7f0000000000, 2 * MIB);
    add(snapshot, ACTION_ALLOC, 0x7f0000000000, MIB);
    add(snapshot, ACTION_SEGMENT_ALLOC, 0x7f0000200000, 2 * MIB);
    add(snapshot, ACTION_ALLOC, 0x7f0000200000, 4096);
    add(snapshot, ACTION_FREE_REQUESTED, 0x7f0000200000, 4096);
    add(snapshot, ACTION_FREE_COMPLETED, 0x7f0000200000, 4096);
    add(snapshot, ACTION_SEGMENT_FREE, 0x7f0000200000, 2 * MIB);
    add_segment(snapshot, 0x7f0000000000, 2 * MIB);
    add_block(snapshot, 0x7f0000000000, MIB, MIB, BLOCK_ACTIVE_ALLOCATED);
    add_block(snapshot, 0x7f0000000000 + MIB, MIB, 0, BLOCK_INACTIVE);
    return snapshot;
}

static void what_a_trace_leaves_open_of_a_pool_is_ambiguous_until_told(void **state)
{
    (void)state;
    struct snapshot *snapshot = unknown_pool();
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT};
    struct replay_result result = run(snapshot, &options);
    assert_true(result.exact);
    assert_non_null(strstr(result.ambiguous, "--pool 0:1=no_split"));
    struct replay_pool_option said = {.first = 0, .second = 1};
    options.pools = &said;
    options.pool_count = 1;
    for (int no_split = 0; no_split < 2; no_split++) {
        said.no_split = no_split;
        result = run(snapshot, &options);
        assert_true(result.exact);
        assert_string_equal(result.ambiguous, "");
        assert_int_equal(result.stats.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].peak,
                         no_split ? 3 * MIB : MIB + 4096);
    }
    snapshot_free(snapshot);
}

static void a_scope_that_is_told_decides_the_pool(void **state)
{
    (void)state;
    struct snapshot *snapshot = unknown_pool();
    const struct replay_pool_option pool = {.first = 0, .second = 7};
    const struct replay_scope_option right = {.first = 0, .second = 7, .from = 2, .to = 3};
    const struct replay_scope_option wrong = {.first = 0, .second = 7, .from = 0, .to = 1};
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT, .pools = &pool,
                                     .pool_count = 1, .scopes = &right, .scope_count = 1};
    struct replay_result result = run(snapshot, &options);
    assert_true(result.exact);
    assert_string_equal(result.ambiguous, "");
    options.scopes = &wrong; /* the first segment is named at the end: it is of the default pool */
    result = run(snapshot, &options);
    assert_false(result.exact);
    snapshot_free(snapshot);
}

/* Without stacks: what an allocator releases by itself and what a flush does is told apart by what follows. */
static void without_stacks_flushes_are_still_told_from_retries(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        if (strcmp(files[i].name, "mempool_end") == 0)
            continue; /* its pools are all gone: without stacks too little is left of them */
        struct snapshot *snapshot = load_from(files[i].name, 0);
        struct replay_options options = {.moment = snapshot->entries.count, .limit = files[i].limit};
        struct replay_result with = run(snapshot, &options);
        for (size_t k = 0; k < snapshot->entries.count; k++)
            snapshot->entries.context[k] = CONTEXT_NONE;
        struct replay_result without = run(snapshot, &options);
        if (!without.exact)
            fail_msg("%s: entry %" PRIu64 ": %s", files[i].name, without.difference_entry, without.difference);
        without.stats.num_sync_all_streams = with.stats.num_sync_all_streams;
        if (files[i].limit != REPLAY_NO_LIMIT)
            assert_memory_equal(&with.stats, &without.stats, sizeof(with.stats));
        assert_true(without.stats.num_alloc_retries <= with.stats.num_alloc_retries);
        snapshot_free(snapshot);
    }
}

/* --- anything at all -------------------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 20;
}

static void damage(struct snapshot *snapshot, uint64_t *seed)
{
    struct entries *entries = &snapshot->entries;
    size_t at = draw(seed) % entries->count, other = draw(seed) % entries->count;
    switch (draw(seed) % 6) {
    case 0:
        entries->action[at] = (uint8_t)(draw(seed) % ACTION_COUNT);
        break;
    case 1:
        entries->address[at] = entries->address[other];
        break;
    case 2:
        entries->size[at] = draw(seed) % 2 ? entries->size[other] : draw(seed) << draw(seed) % 40;
        break;
    case 3:
        entries->stream[at] = (uint32_t)(draw(seed) % snapshot->stream_count);
        break;
    case 4:
        entries->context[at] = draw(seed) % 2 ? CONTEXT_NONE : entries->context[other];
        break;
    default:
        entries->address[at] += (draw(seed) % 64) << (draw(seed) % 30);
    }
}

/* Whatever the entries are, a replay ends, and its counts are sound. */
static void damaged_recordings_are_replayed_or_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"mempool_end", "graphs", "train_cpp", "leak_after", "expandable_mid"};
    static const char *const confs[] = {NULL, "", "expandable_segments:True,max_split_size_mb:20"};
    uint64_t seed = 4711;
    for (int round = 0; round < 120; round++) {
        struct snapshot *snapshot = load_from(names[round % 5], round % 7 == 6 ? 20 : 0);
        for (int i = 0; i < 1 + round % 20; i++)
            damage(snapshot, &seed);
        for (size_t c = 0; c < sizeof(confs) / sizeof(confs[0]); c++) {
            struct replay_options options = {.moment = snapshot->entries.count, .conf = confs[c],
                                             .limit = draw(&seed) % 3 ? REPLAY_NO_LIMIT : draw(&seed) % 1000000000};
            struct replay_result result;
            struct error err = {0};
            int status = replay_run(snapshot, &options, &result, &err);
            if (status)
                fail_msg("round %d: status %d: %s", round, status, err.message);
            assert_true(result.explained <= result.placements);
            assert_true(confs[c] || result.exact || result.approximate || result.difference[0]);
        }
        snapshot_free(snapshot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_address_in_any_file_is_found_and_named),
        cmocka_unit_test(a_changed_size_in_any_file_is_found),
        cmocka_unit_test(contradictions_are_counted_by_kind_and_left_out),
        cmocka_unit_test(a_lost_beginning_is_rebuilt_and_called_approximate),
        cmocka_unit_test(statistics_of_a_moment_are_those_of_a_shorter_recording),
        cmocka_unit_test(without_its_segments_a_recording_is_replayed_from_the_rebuilt_state),
        cmocka_unit_test(a_request_that_failed_is_no_memory_in_use),
        cmocka_unit_test(all_numbers_of_a_moment_are_those_of_a_recording_that_ends_there),
        cmocka_unit_test(an_end_that_was_rebuilt_is_mended_by_the_replay),
        cmocka_unit_test(a_mended_end_is_what_was_there_at_the_moment),
        cmocka_unit_test(a_rebuilt_end_still_refutes),
        cmocka_unit_test(a_limit_that_the_recording_refutes_is_left_out_of_account),
        cmocka_unit_test(what_is_said_of_pools_that_nothing_went_to_is_named),
        cmocka_unit_test(collections_without_a_limit_ask_for_it),
        cmocka_unit_test(a_memory_fraction_in_the_settings_is_a_limit),
        cmocka_unit_test(numbers_are_of_the_whole_recording_where_following_it_ends),
        cmocka_unit_test(what_a_trace_leaves_open_of_a_pool_is_ambiguous_until_told),
        cmocka_unit_test(a_scope_that_is_told_decides_the_pool),
        cmocka_unit_test(without_stacks_flushes_are_still_told_from_retries),
        cmocka_unit_test(damaged_recordings_are_replayed_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
