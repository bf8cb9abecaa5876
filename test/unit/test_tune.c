/* The search for allocator settings: their texts, that it finds, and that it is the same on any number of threads. */
#include "analyze/tune.h"
#include "analyze/tune_settings.h"
#include "format/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FRAG_LIMIT UINT64_C(4503296409)

static struct snapshot *load(const char *name)
{
    char path[600];
    struct snapshot *snapshot;
    struct error err;
    snprintf(path, sizeof(path), "%s/%s.pickle.gz", TEST_DATA, name);
    if (format_read(path, NULL, &snapshot, &err))
        fail_msg("%s: %s", path, err.message);
    return snapshot;
}

static struct tune_options options_of(const struct snapshot *snapshot, uint64_t limit, unsigned threads)
{
    return (struct tune_options){.replay = {.moment = snapshot->entries.count, .limit = limit}, .threads = threads};
}

static void tune(const struct snapshot *snapshot, uint64_t limit, unsigned threads, struct tune_result *result)
{
    const struct tune_options options = options_of(snapshot, limit, threads);
    struct error err;
    if (tune_run(snapshot, &options, result, &err))
        fail_msg("%s", err.message);
}

/* The recording is followed without a limit, the setting runs under one. */
static struct replay_result replay(const struct snapshot *snapshot, const char *conf, uint64_t limit)
{
    const struct replay_options options = options_of(snapshot, REPLAY_NO_LIMIT, 0).replay;
    const struct replay_trial trial = {conf, limit, 0};
    struct replay_plan *plan;
    struct replay_result result = {0};
    struct error err;
    if (replay_plan_new(snapshot, &options, &plan, &err) || replay_plan_run(plan, &trial, &result, &err))
        fail_msg("%s: %s", conf, err.message);
    replay_plan_free(plan);
    return result;
}

static int64_t peak_of(const struct replay_result *result)
{
    return result->stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
}

/* The recording now says that it ran under these. */
static void set_recorded(struct snapshot *snapshot, const char *conf)
{
    uint32_t content = snapshot_string(snapshot, conf, strlen(conf));
    for (size_t i = 0; i < snapshot->setting_count; i++)
        if (strcmp(snapshot_content_text(snapshot, snapshot->settings[i].key, NULL), "PYTORCH_CUDA_ALLOC_CONF") == 0)
            snapshot->settings[i].content = value_make(VALUE_STRING, snapshot_string_object(snapshot, content));
}

static void a_setting_is_written_as_the_allocator_reads_it(void **state)
{
    (void)state;
    for (unsigned first = 0; first < SETTINGS_ROUNDUP_ENTRIES; first++)
        for (unsigned last = first; last < SETTINGS_ROUNDUP_ENTRIES; last++) {
            const struct tune_setting setting = {.divisions = 8, .first = (uint8_t)first, .last = (uint8_t)last};
            struct tune_setting again;
            struct settings settings;
            struct text text = {0};
            struct error err;
            tune_setting_write(&setting, "", &text);
            settings_init(&settings);
            if (settings_parse(&settings, text_string(&text), &err))
                fail_msg("%s: %s", text_string(&text), err.message);
            for (unsigned i = 0; i < SETTINGS_ROUNDUP_ENTRIES; i++)
                assert_int_equal(settings.roundup_divisions[i], i >= first && i <= last ? 8 : 0);
            tune_setting_read(text_string(&text), true, &again);
            assert_int_equal(again.divisions, 8);
            assert_int_equal(again.first, first);
            assert_int_equal(again.last, last);
            text_free(&text);
        }
    const struct tune_setting all = {128, 64, 4, 0, TUNE_LAST_ENTRY, 65, true};
    struct tune_setting again;
    struct text text = {0};
    tune_setting_write(&all, "pinned_num_register_threads:4", &text);
    assert_string_equal(text_string(&text),
                        "pinned_num_register_threads:4,expandable_segments:True,max_split_size_mb:128,"
                        "max_non_split_rounding_mb:64,roundup_power2_divisions:4,garbage_collection_threshold:0.65");
    tune_setting_read(text_string(&text), true, &again);
    assert_memory_equal(&again, &all, sizeof(all));
    assert_int_equal(tune_setting_options(&all), 5);
    text_free(&text);
}

static void recorded_options_that_the_search_leaves_alone_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *recorded;
        bool collects;
        const char *kept;
    } cases[] = {
        {"", false, ""},
        {"expandable_segments:True", false, ""},
        {"pinned_use_background_threads:True", false, "pinned_use_background_threads:True"},
        {" pinned_num_register_threads : 4 , max_split_size_mb:64", false, "pinned_num_register_threads:4"},
        {"roundup_power2_divisions:[64:8,128:4,>:1],backend:native", false, "backend:native"},
        {"backend:native,roundup_power2_divisions:[64:8,>:1],large_segment_size_mb:40,max_non_split_rounding_mb:64",
         false, "backend:native,large_segment_size_mb:40"},
        {"max_split_size_mb:40,garbage_collection_threshold:0.6", false, "garbage_collection_threshold:0.6"},
        {"max_split_size_mb:40,garbage_collection_threshold:0.6", true, ""},
        {"max_split_size_mb_or_so:1", true, "max_split_size_mb_or_so:1"},
        {"pinned_num_register_threads:4$(id)',backend:native,,", true, "backend:native"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct text kept = {0};
        tune_kept(cases[i].recorded, cases[i].collects, &kept);
        assert_string_equal(text_string(&kept), cases[i].kept);
        text_free(&kept);
    }
}

static void kept_options_stand_in_every_setting_found(void **state)
{
    (void)state;
    struct snapshot *snapshot = load("whatif");
    struct tune_result result;
    set_recorded(snapshot, "max_split_size_mb:64, pinned_use_background_threads:True");
    tune(snapshot, REPLAY_NO_LIMIT, 2, &result);
    assert_string_equal(result.baseline.conf, "max_split_size_mb:64, pinned_use_background_threads:True");
    assert_true(result.gains);
    for (size_t i = 0; i < result.count; i++)
        assert_memory_equal(result.rows[i].conf, "pinned_use_background_threads:True", 34);
    tune_free(&result);
    snapshot_free(snapshot);
}

static void large_segments_raise_the_smallest_split_that_is_tried(void **state)
{
    (void)state;
    struct snapshot *snapshot = load("whatif");
    struct tune_result result;
    set_recorded(snapshot, "large_segment_size_mb:40"); /* under it the allocator refuses max_split_size_mb below 40 */
    tune(snapshot, REPLAY_NO_LIMIT, 2, &result);
    assert_true(result.tried >= 60);
    tune_free(&result);
    snapshot_free(snapshot);
}

/* What holds of any result. */
static void check_rows(const struct snapshot *snapshot, uint64_t limit, const struct tune_result *result)
{
    const struct replay_result *before = &result->baseline.replay;
    for (size_t i = 0; i < result->count; i++) {
        const struct tune_row *row = &result->rows[i];
        struct replay_result again = replay(snapshot, row->conf, limit);
        assert_memory_equal(&again.stats, &row->replay.stats, sizeof(again.stats));
        assert_int_equal(row->saved, peak_of(before) - peak_of(&again));
        assert_int_equal(row->extra_calls, again.stats.num_device_alloc + again.stats.num_device_free -
                                               before->stats.num_device_alloc - before->stats.num_device_free);
        assert_int_equal(row->fits, again.stats.num_ooms == 0);
        assert_true(again.stats.num_ooms <= before->stats.num_ooms);
        if (limit == REPLAY_NO_LIMIT)
            assert_true(row->saved >= 0);
        if (i && limit == REPLAY_NO_LIMIT && row->fits)
            assert_true(row->saved <= result->rows[i - 1].saved);
        for (size_t j = 0; j < i; j++) /* something speaks for it */
            assert_true(row->options < result->rows[j].options || row->extra_calls < result->rows[j].extra_calls ||
                        row->saved > result->rows[j].saved);
    }
}

static void the_best_setting_found_is_at_least_as_good_as_any_of_the_usual_ones(void **state)
{
    (void)state;
    static const char *const files[] = {"whatif", "train", "resnet", "expandable", "kvcache", "leak_before", "graphs"};
    static const char *const usual[] = {"", "expandable_segments:True", "max_split_size_mb:64", "max_split_size_mb:128",
                                        "max_split_size_mb:512", "roundup_power2_divisions:8",
                                        "expandable_segments:True,roundup_power2_divisions:16"};
    for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
        struct snapshot *snapshot = load(files[f]);
        struct tune_result result;
        tune(snapshot, REPLAY_NO_LIMIT, 2, &result);
        check_rows(snapshot, REPLAY_NO_LIMIT, &result);
        int64_t best = peak_of(result.count ? &result.rows[0].replay : &result.baseline.replay);
        for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
            struct replay_result other = replay(snapshot, usual[i], REPLAY_NO_LIMIT);
            assert_true(best <= peak_of(&other));
        }
        int64_t hundredth = peak_of(&result.baseline.replay) / 100;
        assert_int_equal(result.gains, result.count && (result.rows[0].saved > hundredth ||
                                                        result.rows[0].replay.stats.num_alloc_retries <
                                                            result.baseline.replay.stats.num_alloc_retries));
        assert_true(result.fits);
        assert_null(result.least_conf);
        tune_free(&result);
        snapshot_free(snapshot);
    }
}

static void at_least_sixty_settings_are_tried(void **state)
{
    (void)state;
    struct snapshot *snapshot = load("whatif");
    struct tune_result result;
    tune(snapshot, REPLAY_NO_LIMIT, 0, &result);
    assert_in_range(result.tried, 60, TUNE_MOST);
    assert_true(result.gains);
    tune_free(&result);
    snapshot_free(snapshot);
}

static void assert_same(const struct tune_result *a, const struct tune_result *b)
{
    assert_int_equal(a->tried, b->tried);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->fits, b->fits);
    assert_int_equal(a->least_limit, b->least_limit);
    for (size_t i = 0; i < a->count; i++) {
        assert_string_equal(a->rows[i].conf, b->rows[i].conf);
        assert_memory_equal(&a->rows[i].replay.stats, &b->rows[i].replay.stats, sizeof(a->rows[i].replay.stats));
    }
}

static void the_number_of_threads_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t limit;
    } cases[] = {{"whatif", REPLAY_NO_LIMIT}, {"frag", FRAG_LIMIT}, {"frag", FRAG_LIMIT / 10 * 8},
                 {"mempool", REPLAY_NO_LIMIT}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct snapshot *snapshot = load(cases[i].name);
        struct tune_result one, other;
        tune(snapshot, cases[i].limit, 1, &one);
        for (unsigned threads = 2; threads <= 3; threads++) {
            tune(snapshot, cases[i].limit, threads, &other);
            assert_same(&one, &other);
            tune_free(&other);
        }
        tune_free(&one);
        snapshot_free(snapshot);
    }
}

static void under_a_limit_the_best_fits_at_the_smallest_cost(void **state)
{
    (void)state;
    struct snapshot *snapshot = load("frag");
    struct tune_result result;
    tune(snapshot, FRAG_LIMIT, 2, &result);
    check_rows(snapshot, FRAG_LIMIT, &result);
    assert_int_equal(result.baseline.replay.stats.num_ooms, 3);
    assert_int_equal(result.recorded_ooms, 3);
    assert_false(result.baseline.fits);
    assert_true(result.fits);
    assert_true(result.gains);
    assert_true(result.rows[0].fits);
    for (size_t i = 1; i < result.count; i++) {
        const struct memory_stats *a = &result.rows[i - 1].replay.stats, *b = &result.rows[i].replay.stats;
        if (a->num_ooms == b->num_ooms && a->num_alloc_retries == b->num_alloc_retries)
            assert_true(result.rows[i - 1].extra_calls <= result.rows[i].extra_calls);
        else
            assert_true(a->num_ooms < b->num_ooms ||
                        (a->num_ooms == b->num_ooms && a->num_alloc_retries < b->num_alloc_retries));
    }
    tune_free(&result);
    snapshot_free(snapshot);
}

static void what_fits_nowhere_is_told_with_a_limit_that_can_be_met(void **state)
{
    (void)state;
    const uint64_t limit = FRAG_LIMIT / 10 * 8;
    struct snapshot *snapshot = load("frag");
    struct tune_result result;
    tune(snapshot, limit, 2, &result);
    assert_false(result.fits);
    assert_true(result.least_limit > limit);
    assert_true(result.least_limit <= result.least_peak);
    struct replay_result met = replay(snapshot, result.least_limit_conf, result.least_limit);
    assert_int_equal(met.stats.num_ooms, 0);
    struct replay_result unlimited = replay(snapshot, result.least_conf, REPLAY_NO_LIMIT);
    assert_int_equal(peak_of(&unlimited), result.least_peak);
    struct replay_result expandable = replay(snapshot, "expandable_segments:True", REPLAY_NO_LIMIT);
    assert_true((int64_t)result.least_peak <= peak_of(&expandable));
    tune_free(&result);
    snapshot_free(snapshot);
}

static void add_entry(struct snapshot *snapshot, enum action action, uint64_t address, uint64_t size)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = action;
    entry.stream = (int64_t)snapshot_stream(snapshot, 0);
    entry.address = address;
    entry.size = size;
    entry.context = CONTEXT_NONE;
    assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
}

/* A big block is carved up by small ones that stay, and then asked for again. */
static void a_segment_that_was_carved_up_needs_other_settings(void **state)
{
    (void)state;
    const uint64_t big = UINT64_C(11643387904), small = 16515072, base = UINT64_C(1) << 40;
    struct snapshot *snapshot = snapshot_new(SOURCE_RMM);
    struct tune_result result;
    add_entry(snapshot, ACTION_ALLOC, base, big);
    add_entry(snapshot, ACTION_FREE_REQUESTED, base, big);
    add_entry(snapshot, ACTION_FREE_COMPLETED, base, big);
    for (uint64_t i = 0; i < 3; i++)
        add_entry(snapshot, ACTION_ALLOC, base + i * 2 * small, small);
    add_entry(snapshot, ACTION_ALLOC, 4 * base, big);
    tune(snapshot, UINT64_C(16) << 30, 2, &result);
    assert_int_equal(result.baseline.replay.stats.num_ooms, 1);
    assert_true(result.gains);
    assert_true(result.rows[0].fits);
    tune_free(&result);
    snapshot_free(snapshot);
}

static void where_nothing_can_be_saved_nothing_is_recommended(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_RMM);
    struct tune_result result;
    add_entry(snapshot, ACTION_ALLOC, UINT64_C(1) << 40, UINT64_C(64) << 20);
    tune(snapshot, REPLAY_NO_LIMIT, 0, &result);
    assert_int_equal(result.count, 0);
    assert_false(result.gains);
    assert_true(result.fits);
    tune_free(&result);
    snapshot_free(snapshot);
}

static void a_trace_without_requests_is_refused(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    const struct tune_options options = options_of(snapshot, REPLAY_NO_LIMIT, 0);
    struct tune_result result;
    struct error err;
    assert_int_equal(tune_run(snapshot, &options, &result, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.message, "nothing to replay"));
    snapshot_free(snapshot);
}

static void settings_that_the_allocator_refuses_are_refused(void **state)
{
    (void)state;
    struct snapshot *snapshot = load("leak_before");
    const struct tune_options options = options_of(snapshot, REPLAY_NO_LIMIT, 2);
    struct tune_result result;
    struct error err;
    set_recorded(snapshot, "max_split_size_mb:1");
    assert_int_equal(tune_run(snapshot, &options, &result, &err), STATUS_USAGE);
    assert_non_null(strstr(err.message, "max_split_size_mb"));
    snapshot_free(snapshot);
}

/* What is advised does not depend on what was asked, and what was advised fits when it is asked for. */
static void a_limit_that_can_be_met_is_the_same_whatever_was_asked(void **state)
{
    (void)state;
    struct snapshot *snapshot = load("frag");
    struct tune_result one, other, met;
    tune(snapshot, UINT64_C(1) << 30, 2, &one);
    tune(snapshot, UINT64_C(3400) << 20, 2, &other);
    assert_int_equal(one.least_limit, other.least_limit);
    assert_string_equal(one.least_limit_conf, other.least_limit_conf);
    assert_int_equal(one.least_peak, other.least_peak);
    assert_string_equal(one.least_conf, other.least_conf);
    tune(snapshot, one.least_limit, 2, &met);
    assert_true(met.fits);
    tune_free(&one);
    tune_free(&other);
    tune_free(&met);
    snapshot_free(snapshot);
}

static void what_failed_when_it_was_recorded_counts_among_what_has_to_fit(void **state)
{
    (void)state;
    const uint64_t gib = UINT64_C(1) << 30;
    for (int large = 0; large < 2; large++) {
        struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
        struct tune_result result;
        add_entry(snapshot, ACTION_SEGMENT_ALLOC, 0x7f0000000000, 2 << 20);
        add_entry(snapshot, ACTION_ALLOC, 0x7f0000000000, 4096);
        add_entry(snapshot, ACTION_OOM, 1 << 30, (large ? 1000 : 80) * gib);
        tune(snapshot, 2 * gib, 2, &result);
        assert_false(result.fits);
        if (large) { /* the device has not that much */
            assert_null(result.least_conf);
            assert_null(result.least_limit_conf);
        } else {
            assert_true(result.least_peak >= 80 * gib && result.least_limit >= 80 * gib);
            assert_int_equal(replay(snapshot, result.least_limit_conf, result.least_limit).ooms, 0);
        }
        tune_free(&result);
        snapshot_free(snapshot);
    }
}

static void what_was_recorded_stands_beside_what_is_predicted_of_the_same_settings(void **state)
{
    (void)state;
    struct snapshot *snapshot = load("frag");
    struct tune_result result;
    tune(snapshot, REPLAY_NO_LIMIT, 2, &result);
    assert_true(result.recorded.exact);
    assert_int_equal(result.recorded.ooms, result.recorded_ooms);
    assert_int_equal(peak_of(&result.recorded), 4502585344);
    assert_true(peak_of(&result.baseline.replay) > peak_of(&result.recorded)); /* its limit is not told */
    tune_free(&result);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_is_written_as_the_allocator_reads_it),
        cmocka_unit_test(recorded_options_that_the_search_leaves_alone_are_kept),
        cmocka_unit_test(kept_options_stand_in_every_setting_found),
        cmocka_unit_test(large_segments_raise_the_smallest_split_that_is_tried),
        cmocka_unit_test(the_best_setting_found_is_at_least_as_good_as_any_of_the_usual_ones),
        cmocka_unit_test(at_least_sixty_settings_are_tried),
        cmocka_unit_test(the_number_of_threads_changes_nothing),
        cmocka_unit_test(under_a_limit_the_best_fits_at_the_smallest_cost),
        cmocka_unit_test(what_fits_nowhere_is_told_with_a_limit_that_can_be_met),
        cmocka_unit_test(a_limit_that_can_be_met_is_the_same_whatever_was_asked),
        cmocka_unit_test(what_failed_when_it_was_recorded_counts_among_what_has_to_fit),
        cmocka_unit_test(what_was_recorded_stands_beside_what_is_predicted_of_the_same_settings),
        cmocka_unit_test(a_segment_that_was_carved_up_needs_other_settings),
        cmocka_unit_test(where_nothing_can_be_saved_nothing_is_recommended),
        cmocka_unit_test(a_trace_without_requests_is_refused),
        cmocka_unit_test(settings_that_the_allocator_refuses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
