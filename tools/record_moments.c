/* Snapshots of moments while the program runs.  Uses base, snapshot and the ring folder. */
#include "tools/record_moments.h"

#include "base/array.h"
#include "format/ring_read.h"
#include "record/ring.h"
#include "tools/command.h"
#include "tools/record_folder.h"
#include "tools/ring_snapshot.h"
#include "tools/torch_history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HISTORY_COMES 15 /* seconds */

static const char *const moment_words[RING_COPIES] = {"every", "oom", "signal"};

static int64_t monotonic_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void record_moments_begin(void *context, int64_t program)
{
    struct record_moments *moments = context;
    moments->program = program;
    moments->started = monotonic_now();
}

/* The program's own process, or the first one if it has no ring and is the only one until then. */
static bool has_plain_name(struct record_moments *moments, int64_t pid)
{
    struct record_file *rings = NULL;
    size_t count = 0;
    bool is_only = true;
    if (pid == moments->program || pid == moments->plain) {
        moments->plain = pid;
        return true;
    }
    if (moments->plain || record_folder_rings(moments->ring_folder, &rings, &count, NULL))
        return false;
    for (size_t i = 0; i < count; i++)
        is_only = is_only && rings[i].pid == pid;
    record_files_free(rings, count);
    if (is_only)
        moments->plain = pid;
    return is_only;
}

static bool has_failed(const struct record_moments *moments, const char *path)
{
    for (size_t i = 0; i < moments->failed_count; i++)
        if (strcmp(moments->failed[i], path) == 0)
            return true;
    return false;
}

/* It stays as it is, and is not tried again. */
static void note_failed(struct record_moments *moments, const char *path)
{
    if (array_reserve(&moments->failed, &moments->failed_capacity, moments->failed_count + 1, sizeof(*moments->failed)))
        return;
    char *copy = strdup(path);
    if (copy)
        moments->failed[moments->failed_count++] = copy;
}

static void note_written(struct record_moments *moments, char *name)
{
    if (moments->files++ == 0)
        moments->first = name;
    else
        free(name);
}

/* PyTorch's own history of that moment: left at an out of memory, else asked for now. */
static void join_history(const struct record_file *file, struct snapshot **snapshot)
{
    char word[32];
    if (!torch_history_is_on(file->path, file->pid))
        return;
    snprintf(word, sizeof(word), "oom%" PRIu32, file->number);
    if (file->copy == RING_COPY_OOM)
        torch_history_join(file->path, file->pid, word, snapshot);
    else if (torch_history_ask(file->path, file->pid))
        torch_history_join(file->path, file->pid, "now", snapshot);
}

/* The process makes its copy before PyTorch learns of the failure. */
static bool still_comes(const struct record_file *file)
{
    struct stat facts;
    char word[32];
    snprintf(word, sizeof(word), "oom%" PRIu32, file->number);
    return file->copy == RING_COPY_OOM && file->is_alive && torch_history_is_on(file->path, file->pid) &&
           !torch_history_is_there(file->path, file->pid, word) && lstat(file->path, &facts) == 0 &&
           time(NULL) - facts.st_mtime < HISTORY_COMES;
}

static int write_moment(struct record_moments *moments, const struct record_file *file, uint64_t number,
                        struct error *err)
{
    struct snapshot *snapshot = NULL;
    char word[48];
    int status = ring_snapshot_read(file->path, &snapshot, err);
    if (status)
        return status;
    join_history(file, &snapshot);
    if (moments->keep_arguments && file->pid == moments->program)
        ring_snapshot_arguments(snapshot, moments->keep_arguments);
    bool with_pid = !has_plain_name(moments, file->pid) && !ring_name_tells_apart(moments->output);
    snprintf(word, sizeof(word), "every %" PRIu64, number); /* of a copy the process says what it is for */
    status = file->copy == RING_COPY_NONE ? ring_snapshot_kept_at(snapshot, word) : STATUS_OK;
    snprintf(word, sizeof(word), "%s%" PRIu64, moment_words[file->copy], number);
    char *name = status ? NULL : ring_snapshot_name(snapshot, moments->output, with_pid, word);
    status = name ? ring_snapshot_write(snapshot, name, err) : error_no_memory(err);
    if (status)
        free(name);
    else
        note_written(moments, name);
    snapshot_free(snapshot);
    return status;
}

/* Counted by us: a program that becomes another one counts from 1 again. */
static uint64_t next_number(struct record_moments *moments, const struct record_file *file)
{
    uint32_t *number = table_at(&moments->numbers, (uint64_t)file->pid * RING_COPIES + file->copy, 0);
    return number ? ++*number : file->number;
}

static void take_copies(struct record_moments *moments)
{
    struct record_file *files = NULL;
    size_t count = 0;
    if (record_folder_copies(moments->ring_folder, &files, &count, NULL))
        return;
    for (size_t i = 0; i < count; i++) {
        struct error err = {0};
        if (has_failed(moments, files[i].path) || still_comes(&files[i]))
            continue;
        if (write_moment(moments, &files[i], next_number(moments, &files[i]), &err) == STATUS_OK) {
            unlink(files[i].path);
            continue;
        }
        command_error(err.status == STATUS_OUTPUT ? NULL : files[i].path, &err);
        command_note("the state of that moment is kept as it is, readable by every command: %s", files[i].path);
        note_failed(moments, files[i].path);
    }
    record_files_free(files, count);
}

/* A process that became another program has a file of each; the one that begins last is written. */
static bool is_newest(const struct record_file *files, size_t count, size_t which)
{
    struct ring_facts facts, other;
    if (ring_read_facts(files[which].path, &facts, NULL))
        return true; /* why it cannot be read is told */
    for (size_t i = 0; i < count; i++)
        if (i != which && files[i].pid == files[which].pid && ring_read_facts(files[i].path, &other, NULL) == STATUS_OK &&
            other.start_time > facts.start_time)
            return false;
    return true;
}

/* A process that has just ended or has no file yet is none of this time's. */
static void take_all(struct record_moments *moments)
{
    struct record_file *files = NULL;
    size_t count = 0;
    if (record_folder_rings(moments->ring_folder, &files, &count, NULL))
        return;
    for (size_t i = 0; i < count; i++) {
        struct error err = {0};
        if (files[i].is_alive && is_newest(files, count, i) && write_moment(moments, &files[i], moments->periods, &err) &&
            !has_failed(moments, files[i].path)) {
            command_error(err.status == STATUS_OUTPUT ? NULL : files[i].path, &err); /* once: the next time is another try */
            note_failed(moments, files[i].path);
        }
    }
    record_files_free(files, count);
}

int record_moments_look(void *context)
{
    struct record_moments *moments = context;
    take_copies(moments);
    if (!moments->every)
        return -1;
    uint64_t periods = (uint64_t)((monotonic_now() - moments->started) / moments->every);
    if (periods > moments->periods) { /* what was missed while the last ones were written stays missed */
        moments->periods = periods;
        take_all(moments);
    }
    int64_t left = moments->started + (int64_t)(moments->periods + 1) * moments->every - monotonic_now();
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

void record_moments_end(struct record_moments *moments)
{
    take_copies(moments);
}

void record_moments_free(struct record_moments *moments)
{
    for (size_t i = 0; i < moments->failed_count; i++)
        free(moments->failed[i]);
    free(moments->failed);
    free(moments->first);
    table_free(&moments->numbers);
}
