/* Every option of the settings string: what is taken, what is refused with what is wrong and where, what a reading
 * leaves as it was.  Uses src/alloc. */
#include "alloc/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MIB SETTINGS_MIB

static struct settings taken(const char *text)
{
    struct settings s;
    struct error err = {0};
    settings_init(&s);
    if (settings_parse(&s, text, &err))
        fail_msg("'%s' is refused: %s", text, err.message);
    return s;
}

static void refused(const char *text, const char *what, const char *where)
{
    struct settings s;
    struct error err = {0};
    settings_init(&s);
    if (settings_parse(&s, text, &err) != STATUS_USAGE)
        fail_msg("'%s' is taken", text);
    if (!strstr(err.message, what) || !strstr(err.message, where))
        fail_msg("'%s': %s", text, err.message);
    assert_int_equal(settings_parse(&s, text, NULL), STATUS_USAGE);
}

static void sizes_have_lower_bounds_and_a_cap(void **state)
{
    (void)state;
    assert_int_equal(taken("max_split_size_mb:20").max_split_size, 20 * MIB);
    refused("max_split_size_mb:19", "at least the large segment's 20 MiB", "'19' at character 19");
    assert_true(taken("max_split_size_mb:99999999999999").max_split_size == UINT64_MAX - (MIB - 1));
    assert_true(taken("max_split_size_mb:-1").max_split_size == UINT64_MAX - (MIB - 1));
    refused("max_split_size_mb:99999999999999999999", "64 bits", "character 19");
    assert_int_equal(taken("max_non_split_rounding_mb:20").max_non_split_rounding, 20 * MIB);
    refused("max_non_split_rounding_mb:19", "at least the large segment's 20 MiB", "character 27");
    assert_int_equal(taken("large_segment_size_mb:11").large_segment_size, 11 * MIB);
    refused("large_segment_size_mb:10", "more than 10 MiB", "'10' at character 23");
    assert_int_equal(taken("large_segment_size_mb:11,max_split_size_mb:11").max_split_size, 11 * MIB);
    refused("large_segment_size_mb:40,max_split_size_mb:39", "at least the large segment's 40 MiB",
            "'39' at character 44");
    assert_int_equal(taken("pinned_reserve_segment_size_mb:1").pinned_reserve_segment_size, MIB);
    refused("pinned_reserve_segment_size_mb:0", "more than 0", "character 32");
}

static void fractions_lie_in_their_ranges(void **state)
{
    (void)state;
    assert_true(taken("garbage_collection_threshold:0.001").garbage_collection_threshold == 0.001);
    assert_true(taken("garbage_collection_threshold:.999").garbage_collection_threshold == 0.999);
    refused("garbage_collection_threshold:0", "both excluded", "character 30");
    refused("garbage_collection_threshold:1.0", "both excluded", "'1.0' at character 30");
    refused("garbage_collection_threshold:-0.5", "both excluded", "character 30");
    refused("garbage_collection_threshold:nan", "both excluded", "character 30");
    refused("garbage_collection_threshold:half", "a number is needed", "'half' at character 30");
    refused("garbage_collection_threshold:1e-999", "a number that a double holds is needed", "character 30");
    assert_true(taken("per_process_memory_fraction:0").per_process_memory_fraction == 0);
    assert_true(taken("per_process_memory_fraction:1").per_process_memory_fraction == 1);
    assert_true(taken("per_process_memory_fraction:0.25").per_process_memory_fraction == 0.25);
    refused("per_process_memory_fraction:1.01", "between 0 and 1", "character 29");
    refused("per_process_memory_fraction:-0.1", "between 0 and 1", "character 29");
}

static void switches_are_exactly_true_or_false(void **state)
{
    (void)state;
    assert_true(taken("expandable_segments:True").expandable_segments);
    assert_false(taken("expandable_segments:True,expandable_segments:False").expandable_segments);
    assert_true(taken("pinned_use_background_threads:True").pinned_use_background_threads);
    assert_true(taken("release_lock_on_cudamalloc:True").release_lock_on_device_malloc);
    assert_true(taken("pinned_use_cuda_host_register:True").pinned_use_host_register);
    assert_true(taken("graph_capture_record_stream_reuse:True").graph_capture_record_stream_reuse);
    refused("expandable_segments:true", "True or False", "'true' at character 21");
    refused("pinned_use_background_threads:1", "True or False", "character 31");
    refused("release_lock_on_cudamalloc:Truely", "True or False", "'Truely' at character 28");
    refused("pinned_use_cuda_host_register:", "a value is needed", "character 31");
    refused("expandable_segments:", "True or False", "character 21");
    refused("graph_capture_record_stream_reuse:FALSE", "True or False", "character 35");
}

static void counts_and_the_backend_are_checked(void **state)
{
    (void)state;
    assert_int_equal(taken("pinned_num_register_threads:128").pinned_num_register_threads, 128);
    refused("pinned_num_register_threads:0", "power of two", "character 29");
    refused("pinned_num_register_threads:3", "power of two", "character 29");
    refused("pinned_num_register_threads:256", "at most 128", "character 29");
    taken("backend:native");
    refused("backend:cudaMallocAsync", "only the native allocator", "'cudaMallocAsync' at character 9");
    refused("backend:slab", "unknown backend", "'slab' at character 9");
}

static void divisions(const char *text, const uint32_t (*table)[SETTINGS_ROUNDUP_ENTRIES])
{
    struct settings s = taken(text);
    for (int i = 0; i < SETTINGS_ROUNDUP_ENTRIES; i++)
        if (s.roundup_divisions[i] != (*table)[i])
            fail_msg("%s: entry %d is %d, not %d", text, i, (int)s.roundup_divisions[i], (int)(*table)[i]);
}

static void a_list_of_divisions_leaves_holes(void **state)
{
    (void)state;
    typedef uint32_t table[SETTINGS_ROUNDUP_ENTRIES];
    divisions("roundup_power2_divisions:4", &(table){4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
    /* the first boundary fills what is below, entries between stay 0, '>' starts after the last one named */
    divisions("roundup_power2_divisions:[4:2]", &(table){2, 2, 2});
    divisions("roundup_power2_divisions:[4:2,32:8]", &(table){2, 2, 2, 0, 0, 8});
    divisions("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
              &(table){1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8});
    divisions("roundup_power2_divisions:[1:16,>:0]", &(table){16});
    divisions("roundup_power2_divisions:[2:0,64:4]", &(table){0, 0, 0, 0, 0, 0, 4});
    divisions("roundup_power2_divisions:[2:4,1048576:8]", &(table){4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8});
    /* a boundary below the first one changes its own entry only, and '>' starts after it */
    divisions("roundup_power2_divisions:[16:2,4:8,>:1]", &(table){2, 2, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
}

static void wrong_divisions_are_refused(void **state)
{
    (void)state;
    refused("roundup_power2_divisions:0", "power of two", "'0' at character 26");
    refused("roundup_power2_divisions:6", "power of two", "'6' at character 26");
    refused("roundup_power2_divisions:[256:6]", "power of two, or 0", "'6' at character 31");
    refused("roundup_power2_divisions:[256:2,>:3]", "power of two, or 0", "'3' at character 35");
    refused("roundup_power2_divisions:[100:2]", "boundary must be a power of two", "'100' at character 27");
    refused("roundup_power2_divisions:[0:2]", "boundary must be a power of two", "character 27");
    refused("roundup_power2_divisions:[256]", "':' is needed after a boundary", "character 30");
    refused("roundup_power2_divisions:[256:2", "',' or ']'", "character 32");
    refused("roundup_power2_divisions:[256:2,", "boundary in MiB", "character 33");
    refused("roundup_power2_divisions:[256:2]]", "',' is needed", "character 33");
}

static void a_reading_resets_three_options_and_keeps_the_others(void **state)
{
    (void)state;
    struct settings s = taken(
        "max_split_size_mb:64,roundup_power2_divisions:4,garbage_collection_threshold:0.5,max_non_split_rounding_mb:32,"
        "large_segment_size_mb:30,expandable_segments:True,release_lock_on_cudamalloc:True,"
        "graph_capture_record_stream_reuse:True,per_process_memory_fraction:0.5,pinned_num_register_threads:4");
    assert_int_equal(settings_parse(&s, "", NULL), 0);
    assert_true(s.max_split_size == SETTINGS_UNLIMITED && s.garbage_collection_threshold == 0);
    for (int i = 0; i < SETTINGS_ROUNDUP_ENTRIES; i++)
        assert_int_equal(s.roundup_divisions[i], 0);
    assert_int_equal(s.max_non_split_rounding, 32 * MIB);
    assert_int_equal(s.large_segment_size, 30 * MIB);
    assert_true(s.expandable_segments && s.release_lock_on_device_malloc && s.graph_capture_record_stream_reuse);
    assert_true(s.per_process_memory_fraction == 0.5);
    assert_int_equal(s.pinned_num_register_threads, 4);
}

static void blanks_count_for_nothing_even_inside_words(void **state)
{
    (void)state;
    struct settings s = taken("\t max_ split_size_mb :\n 2 5 ,expandable_ segments: Tr ue ,"
                              "roundup_power2_divisions : [ 1 : 2 , > : 4 ] , ");
    assert_int_equal(s.max_split_size, 25 * MIB);
    assert_true(s.expandable_segments);
    assert_int_equal(s.roundup_divisions[0], 2);
    assert_int_equal(s.roundup_divisions[15], 4);
    refused("  expandable_segments :  yes", "True or False", "'yes' at character 26");
}

static void what_follows_a_number_is_not_looked_at(void **state)
{
    (void)state;
    assert_int_equal(taken("max_split_size_mb:64MiB").max_split_size, 64 * MIB);
    assert_int_equal(taken("max_split_size_mb:64.9").max_split_size, 64 * MIB);
    assert_true(taken("garbage_collection_threshold:0.8x").garbage_collection_threshold == 0.8);
    assert_int_equal(taken("roundup_power2_divisions:[256:2x,>:4y]").roundup_divisions[8], 2);
    assert_int_equal(taken("pinned_num_register_threads:+8!").pinned_num_register_threads, 8);
    refused("max_split_size_mb:MiB64", "whole number", "'MiB64' at character 19");
    refused("max_split_size_mb:", "whole number", "character 19");
    refused("max_split_size_mb:[64]", "whole number", "character 19");
}

static void what_is_no_setting_is_named_with_its_place(void **state)
{
    (void)state;
    taken("");
    taken("  ");
    taken("expandable_segments:True,");
    refused("max_split_size_mb:64,max_split_mb:64", "unknown setting 'max_split_mb'", "character 22");
    refused("Expandable_segments:True", "unknown setting 'Expandable_segments'", "character 1");
    refused("nonsense", "unknown setting 'nonsense'", "character 1");
    refused("nonsense,expandable_segments:True", "unknown setting 'nonsense'", "character 1");
    refused("odd:[1:2,3:4],expandable_segments:True", "unknown setting 'odd'", "character 1");
    refused("expandable_segments", "':' and a value", "character 20");
    refused("expandable_segments:True backend:native", "True or False", "character 21");
    refused("max_split_size_mb:64:expandable_segments:True", "',' is needed", "character 21");
    refused(",expandable_segments:True", "name is needed", "character 1");
    refused("expandable_segments:True,,backend:native", "name is needed", "character 26");
    refused("backend:,expandable_segments:True", "a value is needed", "character 9");
    refused("odd:[1:2", "unknown setting 'odd'", "character 1");
}

static void of_a_refused_text_the_common_options_are_in_force(void **state)
{
    (void)state;
    struct settings s;
    settings_init(&s);
    assert_int_equal(settings_parse(&s, "nonsense:1,pinned_num_register_threads:8,max_split_size_mb:64", NULL),
                     STATUS_USAGE);
    assert_int_equal(s.max_split_size, 64 * MIB); /* of every accelerator: read before the unknown one is seen */
    assert_int_equal(s.pinned_num_register_threads, 1);
    assert_int_equal(settings_parse(&s, "expandable_segments:True,max_split_size_mb:1,large_segment_size_mb:30", NULL),
                     STATUS_USAGE);
    assert_true(s.expandable_segments && s.max_split_size == SETTINGS_UNLIMITED);
    assert_int_equal(s.large_segment_size, 20 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_lower_bounds_and_a_cap),
        cmocka_unit_test(fractions_lie_in_their_ranges),
        cmocka_unit_test(switches_are_exactly_true_or_false),
        cmocka_unit_test(counts_and_the_backend_are_checked),
        cmocka_unit_test(a_list_of_divisions_leaves_holes),
        cmocka_unit_test(wrong_divisions_are_refused),
        cmocka_unit_test(a_reading_resets_three_options_and_keeps_the_others),
        cmocka_unit_test(blanks_count_for_nothing_even_inside_words),
        cmocka_unit_test(what_follows_a_number_is_not_looked_at),
        cmocka_unit_test(what_is_no_setting_is_named_with_its_place),
        cmocka_unit_test(of_a_refused_text_the_common_options_are_in_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
