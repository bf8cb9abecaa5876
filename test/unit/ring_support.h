/* What the tests of the ring file share: a folder, a child that records, the file it left.  The recorder starts once a
 * process, so every recording happens in a child; what goes wrong there shows as its exit status. */
#ifndef TEST_RING_SUPPORT_H
#define TEST_RING_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/ring_read.h"
#include "record/record.h"
#include "record/ring.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BASE UINT64_C(0x7f0000000000)

static char ring_folder[256];

__attribute__((unused)) static int make_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(ring_folder, sizeof(ring_folder), "%s/cudamem-test-XXXXXX", temporary ? temporary : "/tmp");
    return mkdtemp(ring_folder) ? 0 : -1;
}

/* Calls each() for every file of the folder; returns their number. */
__attribute__((unused)) static int each_file(void (*each)(const char *path, void *context), void *context)
{
    DIR *folder = opendir(ring_folder);
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[600];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", ring_folder, entry->d_name);
        count++;
        if (each)
            each(path, context);
    }
    if (folder)
        closedir(folder);
    return count;
}

__attribute__((unused)) static void remove_file(const char *path, void *context)
{
    (void)context;
    unlink(path);
}

__attribute__((unused)) static int remove_folder(void **state)
{
    (void)state;
    each_file(remove_file, NULL);
    return rmdir(ring_folder);
}

__attribute__((unused)) static void copy_path(const char *path, void *context)
{
    strcpy(context, path);
}

/* The one ring file that is there. */
__attribute__((unused)) static const char *only_file(void)
{
    static char path[600];
    assert_int_equal(each_file(copy_path, path), 1);
    assert_non_null(strstr(path, ".ring"));
    assert_string_equal(strstr(path, ".ring"), ".ring");
    return path;
}

static const char *const ring_calls[] = {"", "cuMemAlloc", "cuMemFree"};

static struct recorder_options ring_options(uint64_t max_entries, unsigned depth)
{
    return (struct recorder_options){.output = "snapshot.bin", .ring_folder = ring_folder, .max_entries = max_entries,
                                     .depth = depth, .native_stacks = depth > 0, .calls = ring_calls, .call_count = 3};
}

__attribute__((unused)) static void start(uint64_t max_entries, unsigned depth)
{
    char message[256];
    struct recorder_options options = ring_options(max_entries, depth);
    if (recorder_start(&options, message, sizeof(message)) || message[0])
        _exit(90);
}

__attribute__((unused)) static struct record_event event_of(enum record_action action, uint64_t address, uint64_t size)
{
    return (struct record_event){.action = action, .address = address, .size = size, .requested = RECORD_UNKNOWN,
                                 .call = action == RECORD_SEGMENT_ALLOC ? 1 : 2};
}

__attribute__((unused)) static uint64_t put(enum record_action action, uint64_t address, uint64_t size)
{
    struct record_event event = event_of(action, address, size);
    return recorder_event(&event);
}

__attribute__((unused)) static uint64_t put_alloc(uint64_t address, uint64_t size)
{
    return put(RECORD_SEGMENT_ALLOC, address, size);
}

__attribute__((unused)) static uint64_t put_free(uint64_t address)
{
    return put(RECORD_SEGMENT_FREE, address, RECORD_UNKNOWN);
}

/* Run body in a child; its wait status. */
__attribute__((unused)) static int in_child(void (*body)(void *), void *context)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        alarm(100);
        body(context);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

__attribute__((unused)) static struct snapshot *read_ring(const char *path)
{
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    if (ring_read(path, &snapshot, &err))
        fail_msg("%s: %s", path, err.message);
    assert_non_null(snapshot);
    return snapshot;
}

/* Record in a child that must end well, and read what it left; the file is removed. */
__attribute__((unused)) static struct snapshot *recorded(void (*body)(void *), void *context)
{
    assert_int_equal(in_child(body, context), 0);
    const char *path = only_file();
    struct snapshot *snapshot = read_ring(path);
    unlink(path);
    return snapshot;
}

#endif
