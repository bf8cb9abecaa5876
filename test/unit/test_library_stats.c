/* The public statistics, as torch.cuda.memory_stats(), its resets and memory_summary() have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "library_calls.h"

static int clean(void **state)
{
    (void)state;
    start_afresh();
    return 0;
}

/* --- the same numbers every way ----------------------------------------------------------------------------------- */

struct visit {
    int count, stop_after;
    char last[64];
    int64_t sum, allocated;
};

static int add(void *self, const char *key, int64_t value)
{
    struct visit *visit = self;
    assert_true(strcmp(visit->last, key) < 0);
    assert_in_range(strlen(key), 1, sizeof(visit->last) - 1);
    strcpy(visit->last, key);
    visit->sum += value;
    if (strcmp(key, "allocated_bytes.all.current") == 0)
        visit->allocated = value;
    return ++visit->count == visit->stop_after ? 77 : 0;
}

static void the_visitor_goes_through_every_key_in_order(void **state)
{
    (void)state;
    struct visit visit = {0}, part = {.stop_after = 5};
    void *block = get(3000, 0, NULL);
    OK(cudamem_visit_memory_stats(0, add, &visit, &error));
    assert_int_equal(visit.count, 122);
    assert_int_equal(visit.allocated, 3072);
    assert_int_equal(cudamem_visit_memory_stats(0, add, &part, NULL), 77);
    assert_int_equal(part.count, 5);
    put(block);
}

static void a_device_that_was_not_used_has_every_key_at_zero(void **state)
{
    (void)state;
    struct visit visit = {0};
    OK(cudamem_visit_memory_stats(2, add, &visit, &error));
    assert_int_equal(visit.count, 122);
    assert_int_equal(visit.sum, -1); /* max_split_size: unlimited */
}

static void single_numbers_are_those_of_the_struct(void **state)
{
    (void)state;
    uint64_t bytes[6];
    void *block = get(3000, 0, NULL);
    put(get(MIB, 0, NULL));
    OK(cudamem_memory_allocated(0, &bytes[0], &error));
    OK(cudamem_max_memory_allocated(0, &bytes[1], &error));
    OK(cudamem_memory_reserved(0, &bytes[2], &error));
    OK(cudamem_max_memory_reserved(0, &bytes[3], &error));
    OK(cudamem_memory_cached(0, &bytes[4], &error));
    OK(cudamem_max_memory_cached(0, &bytes[5], &error));
    assert_int_equal(bytes[0], 3072);
    assert_int_equal(bytes[1], 3072 + MIB);
    for (int i = 2; i < 6; i++)
        assert_int_equal(bytes[i], 2 * MIB);
    put(block);
    OK(cudamem_memory_allocated(0, &bytes[0], &error));
    assert_int_equal(bytes[0], 0);
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_memory_allocated(0, NULL, &error));
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_get_memory_stats(0, NULL, &error));
    cudamem_memory_stats unset = {.struct_size = 0};
    FAILS(CUDAMEM_ERROR_USAGE, cudamem_get_memory_stats(0, &unset, &error));
}

static void json_is_flat_in_order_of_keys_or_nested_as_there(void **state)
{
    (void)state;
    char *flat, *nested;
    put(get(3000, 0, NULL));
    OK(cudamem_memory_stats_json(0, 0, &flat, &error));
    OK(cudamem_memory_stats_json(0, 1, &nested, &error));
    assert_ptr_equal(strstr(flat, "{\"active.all.allocated\": 1, \"active.all.current\": 0, "), flat);
    assert_non_null(strstr(flat, "\"segment.small_pool.peak\": 1}"));
    assert_ptr_equal(strstr(nested, "{\"num_alloc_retries\": 0, \"num_ooms\": 0, \"max_split_size\": -1, "), nested);
    assert_non_null(strstr(nested, "\"allocated_bytes\": {\"all\": {\"current\": 0, \"peak\": 3072, \"allocated\": 3072, "
                                   "\"freed\": 3072}, \"small_pool\": {"));
    assert_int_equal(strcmp(nested + strlen(nested) - 2, "}}"), 0);
    cudamem_text_free(flat);
    cudamem_text_free(nested);
    cudamem_text_free(NULL);
}

/* --- resets ------------------------------------------------------------------------------------------------------- */

static void resetting_the_sums_leaves_current_and_peak(void **state)
{
    (void)state;
    void *block = get(3000, 0, NULL), *pointer;
    put(get(5 * MIB, 0, NULL));
    assert_int_equal(cudamem_alloc((size_t)1 << 50, 0, NULL, &pointer, NULL), CUDAMEM_ERROR_OUT_OF_MEMORY);
    OK(cudamem_reset_accumulated_memory_stats(0, &error));
    cudamem_memory_stats stats = stats_of(0);
    assert_int_equal(stats.allocated_bytes.all.allocated, 0);
    assert_int_equal(stats.allocated_bytes.all.freed, 0);
    assert_int_equal(stats.allocated_bytes.all.current, 3072);
    assert_int_equal(stats.allocated_bytes.all.peak, 3072 + 5 * MIB);
    assert_int_equal(stats.num_alloc_retries + stats.num_ooms + stats.num_sync_all_streams + stats.num_device_alloc +
                         stats.num_device_free, 0);
    assert_int_equal(stats.max_split_size, -1);
    put(block);
}

static void each_peak_reset_brings_the_peak_down_to_what_there_is(void **state)
{
    (void)state;
    int (*const resets[])(int, cudamem_error *) = {cudamem_reset_peak_memory_stats, cudamem_reset_max_memory_allocated,
                                                   cudamem_reset_max_memory_cached};
    void *block = get(3000, 0, NULL);
    for (size_t i = 0; i < 3; i++) {
        put(get(500, 0, NULL));
        assert_int_equal(stats_of(0).allocated_bytes.small_pool.peak, 3584);
        OK(resets[i](0, &error));
        cudamem_memory_stats stats = stats_of(0);
        assert_int_equal(stats.allocated_bytes.small_pool.peak, 3072);
        assert_int_equal(stats.allocated_bytes.all.allocated, 3072 + (i + 1) * 512);
    }
    put(block);
}

/* --- the table of a real run -------------------------------------------------------------------------------------- */

struct address {
    uint64_t recorded;
    void *ours;
};

static CUstream stream_for(int64_t recorded)
{
    static int64_t known[16];
    static CUstream streams[16];
    static size_t count;
    size_t i = 0;
    if (!recorded)
        return NULL;
    while (i < count && known[i] != recorded)
        i++;
    if (i == count) {
        known[count] = recorded;
        streams[count++] = world_stream();
    }
    return streams[i];
}

/* The program's requests, in their order, through the public API. */
static void request_again(const cudamem_snapshot *snapshot)
{
    size_t count = cudamem_snapshot_entry_count(snapshot), live = 0;
    struct address *map = calloc(count, sizeof(*map));
    for (size_t i = 0; i < count; i++) {
        cudamem_entry entry = {.struct_size = sizeof(entry)};
        OK(cudamem_snapshot_entry(snapshot, i, &entry));
        if (entry.action == CUDAMEM_ACTION_ALLOC) {
            map[live++] = (struct address){entry.address, get(entry.size, 0, stream_for(entry.stream))};
        } else if (entry.action == CUDAMEM_ACTION_FREE_REQUESTED) {
            size_t at = live;
            while (map[--at].recorded != entry.address)
                continue;
            put(map[at].ours);
            map[at] = map[--live];
        }
    }
    for (size_t i = 0; i < live; i++)
        map[i].recorded = 0;
    free(map);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static void compare_with(const char *name, const char *suffix, int abbreviated)
{
    char path[4096], *ours;
    snprintf(path, sizeof(path), "%s/%s%s", TEST_DATA, name, suffix);
    char *theirs = read_file(path);
    OK(cudamem_memory_summary(0, abbreviated, &ours, &error));
    assert_string_equal(ours, theirs);
    cudamem_text_free(ours);
    free(theirs);
}

/* PyTorch's words for the run that this one repeats. */
static void a_real_runs_requests_come_to_its_own_summary(const char *name)
{
    char path[4096];
    cudamem_snapshot *snapshot;
    snprintf(path, sizeof(path), "%s/%s.pickle.gz", TEST_DATA, name);
    OK(cudamem_snapshot_open(path, NULL, &snapshot, &error));
    request_again(snapshot);
    cudamem_snapshot_close(snapshot);
    compare_with(name, ".summary.txt", 0);
    compare_with(name, ".summary_abbreviated.txt", 1);
}

static void growing_caches_come_to_pytorchs_summary(void **state)
{
    (void)state;
    a_real_runs_requests_come_to_its_own_summary("kvcache");
}

static void random_requests_come_to_pytorchs_summary(void **state)
{
    (void)state;
    a_real_runs_requests_come_to_its_own_summary("whatif");
}

/* PyTorch has nothing to say before its first use; here the table is there, with zeroes. */
static void before_the_first_use_the_summary_has_zeroes(void **state)
{
    (void)state;
    char *text;
    OK(cudamem_memory_summary(-1, 0, &text, &error));
    assert_non_null(strstr(text, "PyTorch CUDA memory summary, device ID 0"));
    assert_non_null(strstr(text, "| Allocated memory      |      0 B   |      0 B   |      0 B   |      0 B   |"));
    cudamem_text_free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest kvcache[] = {cmocka_unit_test(before_the_first_use_the_summary_has_zeroes),
                                         cmocka_unit_test(growing_caches_come_to_pytorchs_summary)};
    const struct CMUnitTest whatif[] = {cmocka_unit_test(random_requests_come_to_pytorchs_summary)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_visitor_goes_through_every_key_in_order, clean),
        cmocka_unit_test_setup(a_device_that_was_not_used_has_every_key_at_zero, clean),
        cmocka_unit_test_setup(single_numbers_are_those_of_the_struct, clean),
        cmocka_unit_test_setup(json_is_flat_in_order_of_keys_or_nested_as_there, clean),
        cmocka_unit_test_setup(resetting_the_sums_leaves_current_and_peak, clean),
        cmocka_unit_test_setup(each_peak_reset_brings_the_peak_down_to_what_there_is, clean),
    };
    world_open("150109880320,16GiB,1GiB");
    if (argc > 1 && strcmp(argv[1], "kvcache") == 0)
        return cmocka_run_group_tests(kvcache, NULL, NULL);
    if (argc > 1)
        return cmocka_run_group_tests(whatif, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
