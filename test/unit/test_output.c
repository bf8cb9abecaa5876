/* Output files appear whole or not at all. */
#include "base/output.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/cudamem-test-output-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void make_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_file(const char *path, const char *text)
{
    char some[256] = {0};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t got = fread(some, 1, sizeof(some) - 1, file);
    fclose(file);
    assert_int_equal(got, strlen(text));
    assert_string_equal(some, text);
}

static size_t files_in_folder(void)
{
    size_t count = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(listing);
    return count;
}

static int fresh(void **unused)
{
    (void)unused;
    strcpy(folder, "/tmp/cudamem-test-output-XXXXXX");
    umask(022);
    return mkdtemp(folder) ? 0 : -1;
}

static int clean(void **unused)
{
    char command[256];
    (void)unused;
    snprintf(command, sizeof(command), "chmod -R u+w '%s'; rm -rf '%s'", folder, folder);
    return system(command);
}

static void file_appears_only_at_commit(void **unused)
{
    struct output *output;
    struct error err;
    struct stat about;
    (void)unused;
    assert_int_equal(output_open(in_folder("new"), &output, &err), STATUS_OK);
    output_text(output, "hello ");
    output_printf(output, "%d", 42);
    output_char(output, '\n');
    assert_int_equal(output_offset(output), 9);
    assert_int_equal(access(in_folder("new"), F_OK), -1);
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    assert_file(in_folder("new"), "hello 42\n");
    assert_int_equal(files_in_folder(), 1);
    assert_int_equal(stat(in_folder("new"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0644);
}

static void existing_file_is_replaced_only_at_commit_and_keeps_its_mode(void **unused)
{
    struct output *output;
    struct error err;
    struct stat about;
    (void)unused;
    make_file(in_folder("old"), "old text");
    assert_int_equal(chmod(in_folder("old"), 0600), 0);
    assert_int_equal(output_open(in_folder("old"), &output, &err), STATUS_OK);
    output_text(output, "new text");
    assert_file(in_folder("old"), "old text");
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    assert_file(in_folder("old"), "new text");
    assert_int_equal(stat(in_folder("old"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(files_in_folder(), 1);
}

static void abandoned_output_leaves_nothing(void **unused)
{
    struct output *output;
    struct error err;
    char large[200000];
    (void)unused;
    memset(large, 'x', sizeof(large));
    make_file(in_folder("old"), "old text");
    assert_int_equal(output_open(in_folder("old"), &output, &err), STATUS_OK);
    output_write(output, large, sizeof(large));
    output_abandon(output);
    assert_file(in_folder("old"), "old text");
    assert_int_equal(output_open(in_folder("new"), &output, &err), STATUS_OK);
    output_write(output, large, sizeof(large));
    output_abandon(output);
    output_abandon(NULL);
    assert_int_equal(files_in_folder(), 1);
}

static void killed_process_leaves_no_half_file(void **unused)
{
    (void)unused;
    pid_t pid = fork();
    if (pid == 0) {
        struct output *output;
        char large[200000];
        memset(large, 'x', sizeof(large));
        if (output_open(in_folder("new"), &output, NULL))
            _exit(3);
        output_write(output, large, sizeof(large));
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(access(in_folder("new"), F_OK), -1);
}

static void large_writes_arrive_whole(void **unused)
{
    struct output *output;
    struct error err;
    static unsigned char large[1 << 20];
    (void)unused;
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (unsigned char)(i * 31 >> 3);
    assert_int_equal(output_open(in_folder("large"), &output, &err), STATUS_OK);
    for (size_t at = 0, step = 1; at < sizeof(large); step = step * 5 % 100003 + 1) {
        size_t take = step < sizeof(large) - at ? step : sizeof(large) - at;
        output_write(output, large + at, take);
        at += take;
    }
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    unsigned char *back = malloc(sizeof(large) + 1);
    FILE *file = fopen(in_folder("large"), "rb");
    assert_int_equal(fread(back, 1, sizeof(large) + 1, file), sizeof(large));
    assert_memory_equal(back, large, sizeof(large));
    fclose(file);
    free(back);
}

static void symbolic_link_stays_and_its_target_is_replaced(void **unused)
{
    struct output *output;
    struct error err;
    struct stat about;
    (void)unused;
    assert_int_equal(mkdir(in_folder("inner"), 0755), 0);
    make_file(in_folder("inner/target"), "old");
    assert_int_equal(symlink("inner/target", in_folder("link")), 0);
    assert_int_equal(output_open(in_folder("link"), &output, &err), STATUS_OK);
    output_text(output, "new");
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    assert_int_equal(lstat(in_folder("link"), &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_file(in_folder("inner/target"), "new");
    assert_int_equal(symlink("inner/later", in_folder("dangling")), 0);
    assert_int_equal(output_open(in_folder("dangling"), &output, &err), STATUS_OK);
    output_text(output, "made");
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    assert_file(in_folder("inner/later"), "made");
    assert_int_equal(symlink("loop", in_folder("loop")), 0);
    if (output_open(in_folder("loop"), &output, &err) == STATUS_OK)
        output_abandon(output);
}

static void full_disk_is_told_at_commit(void **unused)
{
    struct output *output;
    struct error err;
    char large[100000] = {0};
    (void)unused;
    assert_int_equal(output_open("/dev/full", &output, &err), STATUS_OK);
    output_text(output, "x");
    assert_int_equal(output_commit(output, &err), STATUS_OUTPUT);
    assert_non_null(strstr(err.message, "/dev/full"));
    assert_non_null(strstr(err.message, "No space left"));
    assert_int_equal(output_open("/dev/full", &output, &err), STATUS_OK);
    output_write(output, large, sizeof(large));
    assert_true(output_failed(output));
    assert_false(output_pipe_closed(output));
    assert_int_equal(output_commit(output, &err), STATUS_OUTPUT);
}

/* A limit on file sizes stands for a disk that fills up in the middle. */
static void failed_write_keeps_the_existing_file(void **unused)
{
    (void)unused;
    make_file(in_folder("old"), "old text");
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {4096, 4096};
        struct output *output;
        struct error err;
        char large[100000] = {0};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        if (output_open(in_folder("old"), &output, &err))
            _exit(1);
        output_write(output, large, sizeof(large));
        _exit(output_commit(output, &err) == STATUS_OUTPUT && strstr(err.message, "File too large") ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_file(in_folder("old"), "old text");
    assert_int_equal(files_in_folder(), 1);
}

static void places_that_cannot_be_written_are_named(void **unused)
{
    struct output *output = (void *)1;
    struct error err;
    (void)unused;
    assert_int_equal(output_open(in_folder("no/such/file"), &output, &err), STATUS_OUTPUT);
    assert_null(output);
    assert_non_null(strstr(err.message, "its folder does not exist"));
    assert_int_equal(output_open(folder, &output, &err), STATUS_OUTPUT);
    assert_non_null(strstr(err.message, "it is a folder"));
    assert_int_equal(output_open("", &output, &err), STATUS_OUTPUT);
    if (geteuid() == 0)
        return;
    make_file(in_folder("fixed"), "x");
    assert_int_equal(chmod(in_folder("fixed"), 0444), 0);
    assert_int_equal(output_open(in_folder("fixed"), &output, &err), STATUS_OUTPUT);
    assert_non_null(strstr(err.message, "permission denied"));
    assert_int_equal(chmod(folder, 0555), 0);
    assert_int_equal(output_open(in_folder("new"), &output, &err), STATUS_OUTPUT);
    assert_non_null(strstr(err.message, "permission denied"));
}

static void closed_pipe_is_told_apart(void **unused)
{
    struct output *output;
    struct error err;
    int ends[2], saved = dup(1);
    (void)unused;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    fflush(stdout);
    dup2(ends[1], 1);
    close(ends[1]);
    char large[100000] = {0};
    int opened = output_open("-", &output, &err);
    output_write(output, large, sizeof(large));
    bool closed = output_pipe_closed(output), failed = output_failed(output);
    int committed = output_commit(output, &err);
    dup2(saved, 1);
    close(saved);
    assert_int_equal(opened, STATUS_OK);
    assert_true(closed);
    assert_true(failed);
    assert_int_equal(committed, STATUS_OUTPUT);
}

static void pipes_and_devices_are_written_in_place(void **unused)
{
    struct output *output;
    struct error err;
    struct stat about;
    char some[16] = {0};
    (void)unused;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    int reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    assert_int_equal(output_open(in_folder("pipe"), &output, &err), STATUS_OK);
    assert_false(output_is_terminal(output));
    output_text(output, "through");
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    assert_int_equal(read(reader, some, sizeof(some)), 7);
    assert_string_equal(some, "through");
    close(reader);
    assert_int_equal(stat(in_folder("pipe"), &about), 0);
    assert_true(S_ISFIFO(about.st_mode));
    assert_int_equal(files_in_folder(), 1);
}

static void memory_output_hands_its_bytes_over(void **unused)
{
    struct output *output;
    struct error err;
    unsigned char *bytes = NULL;
    size_t length = 0;
    (void)unused;
    assert_int_equal(output_to_memory(&bytes, &length, &output, &err), STATUS_OK);
    for (int i = 0; i < 30000; i++)
        output_printf(output, "%05d", i);
    char wide[600];
    memset(wide, 'w', sizeof(wide) - 1);
    wide[sizeof(wide) - 1] = '\0';
    output_printf(output, "%s", wide);
    assert_int_equal(output_commit(output, &err), STATUS_OK);
    assert_int_equal(length, 150000 + 599);
    assert_memory_equal(bytes + 5 * 29999, "29999", 5);
    assert_memory_equal(bytes + 150000, wide, 599);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_appears_only_at_commit, fresh, clean),
        cmocka_unit_test_setup_teardown(existing_file_is_replaced_only_at_commit_and_keeps_its_mode, fresh, clean),
        cmocka_unit_test_setup_teardown(abandoned_output_leaves_nothing, fresh, clean),
        cmocka_unit_test_setup_teardown(killed_process_leaves_no_half_file, fresh, clean),
        cmocka_unit_test_setup_teardown(large_writes_arrive_whole, fresh, clean),
        cmocka_unit_test_setup_teardown(symbolic_link_stays_and_its_target_is_replaced, fresh, clean),
        cmocka_unit_test_setup_teardown(full_disk_is_told_at_commit, fresh, clean),
        cmocka_unit_test_setup_teardown(failed_write_keeps_the_existing_file, fresh, clean),
        cmocka_unit_test_setup_teardown(places_that_cannot_be_written_are_named, fresh, clean),
        cmocka_unit_test_setup_teardown(closed_pipe_is_told_apart, fresh, clean),
        cmocka_unit_test_setup_teardown(pipes_and_devices_are_written_in_place, fresh, clean),
        cmocka_unit_test_setup_teardown(memory_output_hands_its_bytes_over, fresh, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
