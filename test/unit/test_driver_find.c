/* Finding the driver's library as the dynamic linker does, and reading what a library exports. */
#include "device/driver_find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PATH_MAX];

static void make_file(const char *name, const void *bytes, size_t length)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

/* Some shared object of this machine: the C library. */
static unsigned char *c_library(size_t *length)
{
    static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6",
                                        "/lib64/libc.so.6", "/usr/lib64/libc.so.6"};
    FILE *file = NULL;
    for (size_t i = 0; i < 4 && !file; i++)
        file = fopen(paths[i], "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(64 << 20);
    assert_non_null(bytes);
    *length = fread(bytes, 1, 64 << 20, file);
    fclose(file);
    return bytes;
}

static void library_path_comes_first_and_in_order(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = c_library(&length);
    char list[5 * PATH_MAX], path[PATH_MAX], wanted[2 * PATH_MAX];
    make_file("text/libcuda.so.1", "not a library", 13);
    make_file("first/libcuda.so.1", bytes, 4096);
    make_file("second/libcuda.so.1", bytes, 4096);
    snprintf(list, sizeof(list), "%s/none:%s/text;%s/first:%s/second", folder, folder, folder, folder);
    assert_int_equal(driver_find(list, path, sizeof(path), NULL), STATUS_OK);
    snprintf(wanted, sizeof(wanted), "%s/first/libcuda.so.1", folder);
    assert_string_equal(path, wanted);
    free(bytes);
}

static void relative_folders_become_absolute(void **state)
{
    (void)state;
    char path[PATH_MAX], wanted[2 * PATH_MAX], here[PATH_MAX];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(driver_find("second", path, sizeof(path), NULL), STATUS_OK);
    snprintf(wanted, sizeof(wanted), "%s/second/libcuda.so.1", folder);
    assert_string_equal(path, wanted);
    assert_int_equal(chdir(here), 0);
}

static void a_name_that_does_not_fit_is_not_cut(void **state)
{
    (void)state;
    char list[PATH_MAX + 16], path[16] = "";
    snprintf(list, sizeof(list), "%s/first", folder);
    int status = driver_find(list, path, sizeof(path), NULL);
    assert_true(status == STATUS_NOT_FOUND || strlen(path) < sizeof(path));
}

static bool count_functions(const char *name, bool is_function, void *context)
{
    int *counts = context;
    counts[0]++;
    if (is_function && strcmp(name, "malloc") == 0)
        counts[1]++;
    if (!is_function && strcmp(name, "environ") == 0)
        counts[2]++;
    return true;
}

static bool stop_at_once(const char *name, bool is_function, void *context)
{
    (void)name;
    (void)is_function;
    ++*(int *)context;
    return false;
}

static void exports_are_read_with_their_kind(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = c_library(&length);
    char path[2 * PATH_MAX];
    int counts[3] = {0}, calls = 0;
    make_file("whole/libc.so.6", bytes, length);
    snprintf(path, sizeof(path), "%s/whole/libc.so.6", folder);
    assert_int_equal(driver_exports(path, count_functions, counts, NULL), STATUS_OK);
    assert_true(counts[0] > 1000);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 1);
    assert_int_equal(driver_exports(path, stop_at_once, &calls, NULL), STATUS_OK);
    assert_int_equal(calls, 1);
    free(bytes);
}

/* Damaged files give an answer or an error, and never more. */
static void damaged_files_are_survived(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = c_library(&length);
    char path[2 * PATH_MAX];
    struct error err;
    int counts[3];
    snprintf(path, sizeof(path), "%s/damaged/lib.so", folder);
    for (size_t cut = 0; cut < 130; cut++) {
        make_file("damaged/lib.so", bytes, cut);
        assert_int_not_equal(driver_exports(path, count_functions, counts, &err), STATUS_OK);
    }
    size_t small = length < (256 << 10) ? length : 256 << 10;
    for (size_t at = 16; at < 64; at++) { /* every byte of the header's numbers, with the rest of the file cut off, too */
        unsigned char kept = bytes[at];
        bytes[at] ^= 0xff;
        make_file("damaged/lib.so", bytes, small);
        (void)driver_exports(path, count_functions, counts, &err);
        bytes[at] = kept;
    }
    assert_int_not_equal(driver_exports(folder, count_functions, counts, &err), STATUS_OK);
    assert_int_not_equal(driver_exports("/nonexistent", count_functions, counts, &err), STATUS_OK);
    free(bytes);
}

static int set_up(void **state)
{
    (void)state;
    const char *place = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/driver-find-XXXXXX", place ? place : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[2 * PATH_MAX];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_path_comes_first_and_in_order),
        cmocka_unit_test(relative_folders_become_absolute),
        cmocka_unit_test(a_name_that_does_not_fit_is_not_cut),
        cmocka_unit_test(exports_are_read_with_their_kind),
        cmocka_unit_test(damaged_files_are_survived),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
