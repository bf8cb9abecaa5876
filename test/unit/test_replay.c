/* Replay of the real recordings: exact under their own settings, PyTorch's own statistics, real runs under others. */
#include "analyze/replay.h"
#include "base/text.h"
#include "format/format.h"
#include "render/summary_text.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FRAG_LIMIT UINT64_C(4503296409)
#define PRESSURE_LIMIT UINT64_C(3002197606)
#define MEMPOOL_LIMIT UINT64_C(241172480)
#define MEMPOOL_LIMIT_ENTRY 29 /* it was set after the first snapshot */

static const struct file {
    const char *name;
    uint64_t limit, limit_entry;
} files[] = {
    {"train", REPLAY_NO_LIMIT}, {"train_cpp", REPLAY_NO_LIMIT}, {"expandable_mid", REPLAY_NO_LIMIT},
    {"expandable", REPLAY_NO_LIMIT}, {"frag", FRAG_LIMIT}, {"frag_seed11", FRAG_LIMIT}, {"frag_seed13", FRAG_LIMIT},
    {"frag_conf", FRAG_LIMIT}, {"leak_before", REPLAY_NO_LIMIT}, {"leak_after", REPLAY_NO_LIMIT},
    {"kvcache", REPLAY_NO_LIMIT}, {"resnet", REPLAY_NO_LIMIT}, {"whatif", REPLAY_NO_LIMIT},
    {"pressure", PRESSURE_LIMIT}, {"graphs", REPLAY_NO_LIMIT}, {"mempool", REPLAY_NO_LIMIT},
    {"mempool_oom", MEMPOOL_LIMIT, MEMPOOL_LIMIT_ENTRY}, {"mempool_end", MEMPOOL_LIMIT, MEMPOOL_LIMIT_ENTRY},
};
#define FILES (sizeof(files) / sizeof(files[0]))

static char *read_whole(const char *name, const char *suffix)
{
    static char bytes[1 << 16];
    char path[600];
    snprintf(path, sizeof(path), "%s/%s%s", TEST_DATA, name, suffix);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    bytes[fread(bytes, 1, sizeof(bytes) - 1, file)] = '\0';
    fclose(file);
    return bytes;
}

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

/* How many keys differ from a real run's memory_stats(), the one left out that a trace does not tell. */
static int different_keys(const char *name, const struct memory_stats *stats)
{
    cJSON *answers = cJSON_Parse(read_whole(name, ".stats.json"));
    const struct memory_stats_key *keys = memory_stats_keys();
    int different = 0;
    assert_non_null(answers);
    for (int i = 0; i < MEMORY_STATS_KEYS; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(answers, keys[i].name);
        assert_non_null(item);
        if (strcmp(keys[i].name, "num_sync_all_streams") == 0 ||
            (int64_t)item->valuedouble == memory_stats_value(stats, &keys[i]))
            continue;
        if (different++ < 3)
            fprintf(stderr, "%s: %s is %" PRId64 ", in the real run %.0f\n", name, keys[i].name,
                    memory_stats_value(stats, &keys[i]), item->valuedouble);
    }
    cJSON_Delete(answers);
    return different;
}

static void recordings_are_reproduced_with_pytorchs_own_statistics(void **state)
{
    (void)state;
    int failures = 0;
    for (size_t i = 0; i < FILES; i++) {
        struct snapshot *snapshot = load(files[i].name);
        struct replay_options options = {.moment = snapshot->entries.count, .limit = files[i].limit, .limit_entry = files[i].limit_entry};
        struct replay_result result;
        struct error err;
        assert_int_equal(replay_run(snapshot, &options, &result, &err), 0);
        if (!result.exact) {
            fprintf(stderr, "%s: entry %" PRIu64 ": %s\n", files[i].name, result.difference_entry, result.difference);
            failures++;
        }
        failures += different_keys(files[i].name, &result.stats) != 0;
        snapshot_free(snapshot);
    }
    assert_int_equal(failures, 0);
}

static void summaries_are_pytorchs_byte_for_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        struct snapshot *snapshot = load(files[i].name);
        struct replay_options options = {.limit = files[i].limit, .limit_entry = files[i].limit_entry};
        struct statistics_list list;
        struct error err;
        assert_int_equal(statistics_collect(snapshot, &snapshot->end, replay_statistics, &options, &list, &err), 0);
        for (int abbreviated = 0; abbreviated < 2; abbreviated++) {
            struct text text = {0};
            summary_text(&list.items[0], abbreviated, &text);
            assert_string_equal(text_string(&text), read_whole(files[i].name,
                                                               abbreviated ? ".summary_abbreviated.txt" : ".summary.txt"));
            text_free(&text);
        }
        statistics_free(&list);
        snapshot_free(snapshot);
    }
}

static void a_changed_entry_is_found(void **state)
{
    (void)state;
    struct snapshot *snapshot = load("whatif");
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT};
    struct replay_result result;
    struct error err;
    size_t changed = 0;
    for (size_t i = snapshot->entries.count / 2; !changed; i++)
        if (snapshot->entries.action[i] == ACTION_ALLOC)
            changed = i;
    snapshot->entries.address[changed] += 512;
    assert_int_equal(replay_run(snapshot, &options, &result, &err), 0);
    assert_false(result.exact);
    assert_int_equal(result.difference_entry, changed);
    snapshot->entries.address[changed] -= 512;
    snapshot->end.blocks[snapshot->end.block_count / 2].size += 512;
    assert_int_equal(replay_run(snapshot, &options, &result, &err), 0);
    assert_false(result.exact);
    assert_int_equal(result.difference_entry, snapshot->entries.count);
    snapshot_free(snapshot);
}

static void other_settings_are_predicted(void **state)
{
    (void)state;
    static const struct {
        const char *recording, *run, *conf;
        uint64_t limit;
    } cases[] = {
        {"whatif", "whatif_conf1", "expandable_segments:True", REPLAY_NO_LIMIT},
        {"whatif", "whatif_conf2", "max_split_size_mb:64", REPLAY_NO_LIMIT},
        {"whatif", "whatif_conf3", "roundup_power2_divisions:8", REPLAY_NO_LIMIT},
        {"whatif", "whatif", "", REPLAY_NO_LIMIT},
        {"train", "train_conf1", "expandable_segments:True", REPLAY_NO_LIMIT},
        {"train", "train_conf2", "max_split_size_mb:64", REPLAY_NO_LIMIT},
        {"replay/special", "replay/special_conf1", "expandable_segments:True", REPLAY_NO_LIMIT}, /* pools that lend, or do not split */
        {"replay/special", "replay/special_conf2", "max_split_size_mb:32,roundup_power2_divisions:4", REPLAY_NO_LIMIT},
        {"replay/special", "replay/special_conf3", "roundup_power2_divisions:[1:0,8:4,>:2],max_split_size_mb:100", REPLAY_NO_LIMIT},
        {"replay/pools", "replay/pools_conf1", "expandable_segments:True", REPLAY_NO_LIMIT}, /* pools that come and go */
        {"replay/pools", "replay/pools_conf2", "max_split_size_mb:32,roundup_power2_divisions:4", REPLAY_NO_LIMIT},
        {"replay/pools", "replay/pools_conf3", "roundup_power2_divisions:8", REPLAY_NO_LIMIT},
        {"pressure", "pressure_conf1", "expandable_segments:True", PRESSURE_LIMIT},
        {"pressure", "pressure_conf2", "max_split_size_mb:64", PRESSURE_LIMIT},
        {"pressure", "pressure_conf3", "garbage_collection_threshold:0.7", PRESSURE_LIMIT},
    };
    int failures = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct snapshot *snapshot = load(cases[i].recording);
        struct replay_options options = {.moment = snapshot->entries.count, .limit = cases[i].limit, .conf = cases[i].conf};
        struct replay_result result;
        struct error err;
        assert_int_equal(replay_run(snapshot, &options, &result, &err), 0);
        failures += different_keys(cases[i].run, &result.stats) != 0;
        snapshot_free(snapshot);
    }
    assert_int_equal(failures, 0);
}

/* The third run of this program under other settings went another way in a few small blocks. */
static void peaks_and_segments_of_a_training_job_are_predicted(void **state)
{
    (void)state;
    static const char *const wanted[] = {"allocated_bytes.all.peak", "reserved_bytes.all.peak", "segment.all.peak",
                                         "segment.all.allocated", "num_device_alloc"};
    struct snapshot *snapshot = load("train");
    struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT,
                                     .conf = "roundup_power2_divisions:8"};
    struct replay_result result;
    struct error err;
    assert_int_equal(replay_run(snapshot, &options, &result, &err), 0);
    cJSON *answers = cJSON_Parse(read_whole("train_conf3", ".stats.json"));
    const struct memory_stats_key *keys = memory_stats_keys();
    int found = 0;
    for (int i = 0; i < MEMORY_STATS_KEYS; i++)
        for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++) {
            if (strcmp(keys[i].name, wanted[k]) != 0)
                continue;
            found++;
            const cJSON *answer = cJSON_GetObjectItemCaseSensitive(answers, wanted[k]);
            assert_int_equal(memory_stats_value(&result.stats, &keys[i]), (int64_t)answer->valuedouble);
        }
    assert_int_equal(found, sizeof(wanted) / sizeof(wanted[0]));
    cJSON_Delete(answers);
    snapshot_free(snapshot);
}

/* How many recorded segments lie where the rule puts them. */
static void the_rule_explains_every_placement_where_nobody_else_took_memory(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t limit, placements;
    } cases[] = {{"pressure", PRESSURE_LIMIT, 140}, {"frag", FRAG_LIMIT, 153}, {"frag_conf", FRAG_LIMIT, 482},
                 {"whatif", REPLAY_NO_LIMIT, 64}, {"kvcache", REPLAY_NO_LIMIT, 5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct snapshot *snapshot = load(cases[i].name);
        struct replay_options options = {.moment = snapshot->entries.count, .limit = cases[i].limit};
        struct replay_result result;
        struct error err;
        assert_int_equal(replay_run(snapshot, &options, &result, &err), 0);
        assert_int_equal(result.placements, cases[i].placements);
        assert_int_equal(result.explained, cases[i].placements);
        snapshot_free(snapshot);
    }
}

/* With what others did learned from the recording, its own settings put everything where it was. */
static void a_prediction_under_the_recorded_settings_is_the_recording(void **state)
{
    (void)state;
    static const char *const names[] = {"train", "resnet", "train_cpp", "leak_after", "kvcache", "whatif"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct snapshot *snapshot = load(names[i]);
        struct replay_options options = {.moment = snapshot->entries.count, .limit = REPLAY_NO_LIMIT, .conf = ""};
        struct replay_result result;
        struct error err;
        assert_int_equal(replay_run(snapshot, &options, &result, &err), 0);
        assert_int_equal(different_keys(names[i], &result.stats), 0);
        snapshot_free(snapshot);
    }
}

static void what_cannot_be_replayed_says_so(void **state)
{
    (void)state;
    struct snapshot *snapshot = snapshot_new(SOURCE_TORCH);
    struct replay_options options = {.limit = REPLAY_NO_LIMIT, .moment = 10};
    struct replay_result result;
    struct error err;
    assert_int_equal(replay_run(snapshot, &options, &result, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.message, "nothing to replay"));
    struct entry entry;
    entry_init(&entry);
    entry.action = ACTION_FREE_REQUESTED;
    entry.address = 4096;
    entry.size = 512;
    entry.stream = 0;
    assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
    entry.action = ACTION_ALLOC;
    entry.address = 8192;
    assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
    options.conf = "";
    assert_int_equal(replay_run(snapshot, &options, &result, &err), 0);
    assert_int_equal(result.contradictions.counts[REPLAY_UNKNOWN_FREE], 1);
    assert_int_equal(result.contradictions.first[REPLAY_UNKNOWN_FREE], 0);
    options.conf = "max_split_size_mb:1";
    assert_int_equal(replay_run(snapshot, &options, &result, &err), STATUS_USAGE);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings_are_reproduced_with_pytorchs_own_statistics),
        cmocka_unit_test(summaries_are_pytorchs_byte_for_byte),
        cmocka_unit_test(a_changed_entry_is_found),
        cmocka_unit_test(other_settings_are_predicted),
        cmocka_unit_test(peaks_and_segments_of_a_training_job_are_predicted),
        cmocka_unit_test(the_rule_explains_every_placement_where_nobody_else_took_memory),
        cmocka_unit_test(a_prediction_under_the_recorded_settings_is_the_recording),
        cmocka_unit_test(what_cannot_be_replayed_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
