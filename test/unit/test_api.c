/* The public library as a program sees it: only include/cudamem and the shared library. */
#include <cudamem/cudamem.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *data_folder;

static cudamem_snapshot *open_data(const char *name)
{
    char path[4096];
    cudamem_snapshot *snapshot;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    snprintf(path, sizeof(path), "%s/%s", data_folder, name);
    int status = cudamem_snapshot_open(path, NULL, &snapshot, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(status, CUDAMEM_OK);
    return snapshot;
}

static void open_gives_the_rows_of_a_real_file(void **state)
{
    (void)state;
    cudamem_snapshot *snapshot = open_data("train.pickle.gz");
    assert_int_equal(cudamem_snapshot_entry_count(snapshot), 4395);
    assert_int_equal(cudamem_snapshot_segment_count(snapshot), 45);
    cudamem_entry entry = {.struct_size = sizeof(entry)};
    assert_int_equal(cudamem_snapshot_entry(snapshot, 1, &entry), CUDAMEM_OK);
    assert_string_equal(cudamem_action_name(entry.action), "alloc");
    assert_int_equal(entry.size, 8388608);
    assert_int_equal(entry.address, 140705754251264);
    assert_int_equal(entry.time_us, 1796084455014389);
    cudamem_frame frames[2] = {{.struct_size = sizeof(frames[0])}, {.struct_size = sizeof(frames[0])}};
    assert_int_equal(cudamem_snapshot_stack(snapshot, entry.context, frames, 2), 6);
    assert_string_equal(frames[0].name, "<lambda>");
    assert_string_equal(frames[1].name, "_apply");
    assert_int_equal(frames[1].line, 965);
    assert_int_equal(cudamem_snapshot_entry(snapshot, 4395, &entry), CUDAMEM_ERROR_NOT_FOUND);
    cudamem_snapshot_close(snapshot);
}

static void a_saved_snapshot_opens_again(void **state)
{
    (void)state;
    char path[] = "/tmp/cudamem-api-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    cudamem_snapshot *snapshot = open_data("mempool.pickle.gz"), *again;
    assert_int_equal(cudamem_snapshot_save(snapshot, path, "bin", NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_snapshot_open(path, NULL, &again, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_snapshot_entry_count(again), 29);
    assert_int_equal(cudamem_snapshot_segment_count(again), 9);
    assert_int_equal(cudamem_snapshot_block_count(again), cudamem_snapshot_block_count(snapshot));
    cudamem_snapshot_close(snapshot);
    cudamem_snapshot_close(again);
    unlink(path);
}

static void an_older_caller_with_a_smaller_struct_is_not_overrun(void **state)
{
    (void)state;
    cudamem_snapshot *snapshot = open_data("train.pickle.gz");
    union {
        cudamem_entry entry;
        unsigned char bytes[sizeof(cudamem_entry)];
    } small;
    memset(&small, 0x5a, sizeof(small));
    small.entry.struct_size = offsetof(cudamem_entry, stream);
    assert_int_equal(cudamem_snapshot_entry(snapshot, 0, &small.entry), CUDAMEM_OK);
    for (size_t i = offsetof(cudamem_entry, stream); i < sizeof(small); i++)
        assert_int_equal(small.bytes[i], 0x5a);
    cudamem_snapshot_close(snapshot);
}

static void a_missing_file_is_an_input_error_with_a_sentence(void **state)
{
    (void)state;
    cudamem_snapshot *snapshot = (cudamem_snapshot *)(void *)&data_folder;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    assert_int_equal(cudamem_snapshot_open("/nonexistent/file", NULL, &snapshot, &error), CUDAMEM_ERROR_INPUT);
    assert_null(snapshot);
    assert_int_equal(error.status, CUDAMEM_ERROR_INPUT);
    assert_true(strlen(error.message) > 10);
}

static void an_unknown_format_is_refused_and_leaves_no_file(void **state)
{
    (void)state;
    cudamem_snapshot *snapshot = open_data("mempool.pickle.gz");
    const char *path = "/tmp/cudamem-api-never-there";
    assert_int_equal(cudamem_snapshot_save(snapshot, path, "docx", NULL), CUDAMEM_ERROR_USAGE);
    assert_int_equal(access(path, F_OK), -1);
    cudamem_snapshot_close(snapshot);
}

int main(void)
{
    data_folder = getenv("CUDAMEM_TEST_DATA");
    if (!data_folder)
        data_folder = "test/data";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_gives_the_rows_of_a_real_file),
        cmocka_unit_test(a_saved_snapshot_opens_again),
        cmocka_unit_test(an_older_caller_with_a_smaller_struct_is_not_overrun),
        cmocka_unit_test(a_missing_file_is_an_input_error_with_a_sentence),
        cmocka_unit_test(an_unknown_format_is_refused_and_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
