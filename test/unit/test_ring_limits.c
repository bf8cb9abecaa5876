/* When there is no room: one line, and the program goes on. */
#include "ring_support.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

/* Run body in a child with its standard error in text; what it ended with. */
static int with_stderr(void (*body)(void *), void *context, char *text, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        alarm(60);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        body(context);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t count; used + 1 < size && (count = read(ends[0], text + used, size - 1 - used)) > 0;)
        used += (size_t)count;
    text[used] = 0;
    close(ends[0]);
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static int lines(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void limit(int what, rlim_t most)
{
    struct rlimit rlimit = {most, most};
    if (setrlimit(what, &rlimit))
        _exit(80);
}

/* Events go nowhere, quietly, in this process and in a child of it. */
static void events_are_ignored(void)
{
    for (uint64_t i = 0; i < 100; i++)
        if (put_alloc(BASE + i * 4096, 4096) != 0)
            _exit(1);
    pid_t child = fork();
    if (!child) {
        put_alloc(BASE, 4096);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    _exit(status ? 2 : 0);
}

static void with_small_files(void *context)
{
    (void)context;
    start(0, 16);
    limit(RLIMIT_FSIZE, 1 << 20);
    events_are_ignored();
}

static void limit_on_file_size_is_one_line_and_no_signal(void **state)
{
    (void)state;
    char text[4096];
    assert_int_equal(with_stderr(with_small_files, NULL, text, sizeof(text)), 0);
    assert_int_equal(lines(text), 1);
    assert_non_null(strstr(text, "cudamem: "));
    assert_non_null(strstr(text, "File too large"));
    assert_int_equal(each_file(NULL, NULL), 0);
}

static void without_descriptors(void *context)
{
    (void)context;
    start(0, 16);
    limit(RLIMIT_NOFILE, 3);
    events_are_ignored();
}

static void no_descriptor_is_one_line(void **state)
{
    (void)state;
    char text[4096];
    assert_int_equal(with_stderr(without_descriptors, NULL, text, sizeof(text)), 0);
    assert_int_equal(lines(text), 1);
    assert_non_null(strstr(text, "Too many open files"));
}

static void without_address_space(void *context)
{
    (void)context;
    start(0, 0);
    limit(RLIMIT_AS, 1 << 20); /* what is mapped already stays */
    for (uint64_t i = 0; i < 100; i++)
        if (put_alloc(BASE + i * 4096, 4096) != 0)
            _exit(1);
}

static void no_address_space_is_one_line(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    char text[4096];
    assert_int_equal(with_stderr(without_address_space, NULL, text, sizeof(text)), 0);
    assert_int_equal(lines(text), 1);
    assert_non_null(strstr(text, "Cannot allocate memory"));
    assert_int_equal(each_file(NULL, NULL), 0);
}

static void outgrow_file(void *context)
{
    (void)context;
    start(1000, 0);
    limit(RLIMIT_FSIZE, 2 << 20);
    for (uint64_t i = 0; i < 60000; i++)
        if (!put_alloc(BASE + i * 4096, 4096)) /* still recorded; some will not be remembered as live */
            _exit(1);
}

static void live_memory_that_finds_no_room_is_counted_and_said_once(void **state)
{
    (void)state;
    char text[4096];
    assert_int_equal(with_stderr(outgrow_file, NULL, text, sizeof(text)), 0);
    assert_int_equal(lines(text), 1);
    assert_non_null(strstr(text, "incomplete"));
    struct snapshot *snapshot = read_ring(only_file());
    assert_int_equal(snapshot->entries.count, 1000);
    assert_true(snapshot->processes[0].incomplete);
    assert_true(snapshot->processes[0].lost_state > 10000);
    assert_in_range(snapshot->end.segment_count + snapshot->processes[0].lost_state, 60000, 61000);
    assert_int_equal(snapshot->devices[0].stats.kinds[MEMORY_STAT_SEGMENT][MEMORY_POOL_ALL].current, 60000);
    snapshot_free(snapshot);
    each_file(remove_file, NULL);
}

static void on_full_disk(void *context)
{
    int *mounted = context;
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", ring_folder, "tmpfs", 0, "size=2m,mode=0700")) {
        fprintf(stderr, "skip");
        _exit(0);
    }
    (void)mounted;
    start(0, 0);
    events_are_ignored();
}

static void full_disk_is_one_line(void **state)
{
    (void)state;
    char text[4096];
    assert_int_equal(with_stderr(on_full_disk, NULL, text, sizeof(text)), 0);
    if (!strcmp(text, "skip")) {
        print_message("no right to mount a small file system\n");
        skip();
    }
    assert_int_equal(lines(text), 1);
    assert_non_null(strstr(text, "No space left on device"));
}

/* --- folders -------------------------------------------------------------------------------------------------------- */

static void record_into(void *context)
{
    char message[256];
    struct recorder_options options = ring_options(0, 0);
    options.ring_folder = context;
    if (recorder_start(&options, message, sizeof(message)))
        _exit(3);
    _exit(put_alloc(BASE, 4096) ? 10 : 11);
}

static int record_in_folder(char *folder, char *text, size_t size)
{
    return WEXITSTATUS(with_stderr(record_into, folder, text, size));
}

static void remove_with_files(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

/* As on another host than the launcher's. */
static void folder_that_is_not_there_is_made_in_the_temporary_one(void **state)
{
    (void)state;
    char text[4096], place[300], missing[340], made[340];
    snprintf(place, sizeof(place), "%s/place", ring_folder);
    snprintf(missing, sizeof(missing), "%s/not/there", place);
    snprintf(made, sizeof(made), "%s/cudamem-%u", place, (unsigned)geteuid());
    assert_int_equal(mkdir(place, 0700), 0);
    setenv("TMPDIR", place, 1);
    assert_int_equal(record_in_folder(missing, text, sizeof(text)), 10);
    unsetenv("TMPDIR");
    assert_int_equal(access(made, F_OK), 0);
    remove_with_files(made);
    assert_int_equal(rmdir(place), 0);
}

static void folder_must_be_ours_alone(void **state)
{
    (void)state;
    char text[4096], open_folder[300], link[300];
    snprintf(open_folder, sizeof(open_folder), "%s/open", ring_folder);
    snprintf(link, sizeof(link), "%s/link", ring_folder);
    assert_int_equal(mkdir(open_folder, 0700), 0);
    assert_int_equal(record_in_folder(open_folder, text, sizeof(text)), 10);
    assert_int_equal(chmod(open_folder, 0750), 0);
    assert_int_equal(record_in_folder(open_folder, text, sizeof(text)), 11);
    assert_int_equal(lines(text), 1);
    assert_int_equal(chmod(open_folder, 0700), 0);
    assert_int_equal(symlink(open_folder, link), 0);
    assert_int_equal(record_in_folder(link, text, sizeof(text)), 11);
    unlink(link);
    remove_with_files(open_folder);
}

static void start_by_environment(void *context)
{
    char message[256];
    struct recorder_options options = ring_options(0, 0);
    options.ring_folder = NULL;
    setenv(context, ring_folder, 1);
    if (recorder_start(&options, message, sizeof(message)))
        _exit(3);
    _exit(put_alloc(BASE, 4096) ? 0 : 11);
}

static void folder_comes_from_the_environment_or_is_made_in_the_temporary_one(void **state)
{
    (void)state;
    char by_name[] = "CUDAMEM_RING_FOLDER", by_place[] = "TMPDIR";
    assert_int_equal(in_child(start_by_environment, by_name), 0);
    unlink(only_file());
    assert_int_equal(in_child(start_by_environment, by_place), 0);
    char path[600];
    struct stat status;
    snprintf(path, sizeof(path), "%s/cudamem-%u", ring_folder, (unsigned)geteuid());
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    char keep[256];
    strcpy(keep, ring_folder);
    strcpy(ring_folder, path);
    snapshot_free(read_ring(only_file()));
    each_file(remove_file, NULL);
    rmdir(ring_folder);
    strcpy(ring_folder, keep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limit_on_file_size_is_one_line_and_no_signal),
        cmocka_unit_test(no_descriptor_is_one_line),
        cmocka_unit_test(no_address_space_is_one_line),
        cmocka_unit_test(live_memory_that_finds_no_room_is_counted_and_said_once),
        cmocka_unit_test(full_disk_is_one_line),
        cmocka_unit_test(folder_must_be_ours_alone),
        cmocka_unit_test(folder_that_is_not_there_is_made_in_the_temporary_one),
        cmocka_unit_test(folder_comes_from_the_environment_or_is_made_in_the_temporary_one),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
