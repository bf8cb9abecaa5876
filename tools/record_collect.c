/* Ring files become snapshot files.  Uses format, symbol, snapshot and base. */
#include "tools/record_collect.h"

#include "base/output.h"
#include "base/size.h"
#include "base/text.h"
#include "format/format.h"
#include "snapshot/snapshot.h"
#include "symbol/symbolize.h"
#include "tools/command.h"
#include "tools/record_folder.h"
#include "tools/record_program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COLLECT_NAMES 1000 /* tried for files of one name */

/* What the closing lines tell. */
struct tally {
    size_t files, processes;
    uint64_t entries, lost, ooms;
    struct text peaks; /* "device 0 1.50 GiB, ..." of the first file */
    char *first;       /* name of the first file */
    bool incomplete;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *record_output_name(const char *pattern, const char *program, int64_t pid, int64_t rank, const char *host,
                         bool with_pid)
{
    struct text name = {0};
    for (const char *c = pattern; *c; c++) {
        if (*c != '%' || !c[1]) {
            text_char(&name, *c);
            continue;
        }
        switch (*++c) {
        case 'p': text_printf(&name, "%" PRId64, pid); break;
        case 'r': text_printf(&name, "%" PRId64, rank < 0 ? 0 : rank); break;
        case 'h': text_add(&name, host); break;
        case 'n': text_add(&name, last_part(program)); break;
        case '%': text_char(&name, '%'); break;
        default:
            text_char(&name, '%');
            text_char(&name, *c);
        }
    }
    if (with_pid) {
        const char *whole = text_string(&name);
        const char *dot = strrchr(last_part(whole), '.');
        struct text longer = {0};
        size_t stem = dot && dot != last_part(whole) ? (size_t)(dot - whole) : strlen(whole);
        text_append(&longer, whole, stem);
        text_printf(&longer, ".%" PRId64 "%s", pid, whole + stem);
        text_free(&name);
        name = longer;
    }
    char *result = text_failed(&name) ? NULL : strdup(text_string(&name));
    text_free(&name);
    return result;
}

static bool name_tells_apart(const char *pattern)
{
    for (const char *c = pattern; *c; c++)
        if (*c == '%' && c[1] && *++c == 'p')
            return true;
    return false;
}

/* What has the name already is kept; only a regular file is in the way. */
static int keep_old(const char *path, struct error *err)
{
    struct stat facts;
    char *old = NULL;
    if (lstat(path, &facts) || !S_ISREG(facts.st_mode))
        return STATUS_OK;
    if (asprintf(&old, "%s.old", path) < 0)
        return error_no_memory(err);
    int status = rename(path, old) ? error_set(err, STATUS_OUTPUT, "%s cannot be kept as %s: %s", path, old,
                                                strerror(errno)) : STATUS_OK;
    free(old);
    return status;
}

static int write_snapshot(const struct snapshot *snapshot, const char *path, struct error *err)
{
    struct output *output;
    int status = output_open(path, &output, err);
    if (status)
        return status;
    status = format_write(snapshot, "bin", NULL, output, err);
    if (!status)
        status = keep_old(path, err);
    if (status)
        output_abandon(output);
    else
        status = output_commit(output, err);
    return status;
}

static void count_snapshot(const struct snapshot *snapshot, const char *path, struct tally *tally)
{
    char size[SIZE_TEXT];
    bool first = tally->files++ == 0;
    tally->incomplete |= snapshot->processes[0].incomplete;
    tally->entries += snapshot->entries.count;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct device *device = &snapshot->devices[i];
        int64_t peak = device->stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
        tally->lost += device->lost_entries;
        tally->ooms += device->has_stats ? (uint64_t)device->stats.num_ooms : 0;
        if (first && device->has_stats)
            text_printf(&tally->peaks, "%sdevice %u %s", tally->peaks.length ? ", " : "", (unsigned)device->ordinal,
                        size_format((uint64_t)peak, size));
    }
    if (first)
        tally->first = strdup(path);
}

static void add_facts(struct snapshot *snapshot, const struct record_job *job)
{
    struct process *process = &snapshot->processes[0];
    if (process->pid != job->run.pid)
        return;
    process->exit_status = job->run.status;
    if (process->end_time <= 0)
        process->end_time = job->run.end;
    if (!job->keep_args)
        return;
    struct text arguments = {0};
    for (char **argument = job->argv; *argument; argument++)
        text_append(&arguments, *argument, strlen(*argument) + (argument[1] ? 1 : 0));
    if (!text_failed(&arguments))
        process->arguments = snapshot_string(snapshot, text_string(&arguments), arguments.length);
    text_free(&arguments);
}

/* The ring's own process keeps its ring if it cannot be turned into a snapshot: it can be read as it is. */
static bool collect_ring(const struct record_job *job, const struct record_file *ring, bool with_pid,
                         struct tally *tally)
{
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    if (format_read(ring->path, NULL, &snapshot, &err)) {
        command_error(ring->path, &err);
        return false;
    }
    add_facts(snapshot, job);
    int status = symbolize_snapshot(snapshot, NULL, &err);
    if (status)
        command_error(ring->path, &err); /* names can be looked up later */
    const struct process *process = &snapshot->processes[0];
    char *name = record_output_name(job->output, snapshot_content_text(snapshot, process->program, NULL), process->pid,
                                    process->rank, snapshot_content_text(snapshot, process->host, NULL), with_pid);
    status = name ? write_snapshot(snapshot, name, &err) : error_no_memory(&err);
    if (status) {
        command_error(NULL, &err); /* the message names the file */
        command_note("the recording is kept as it is, readable by every command: %s", ring->path);
    } else {
        count_snapshot(snapshot, name, tally);
        unlink(ring->path);
    }
    free(name);
    snapshot_free(snapshot);
    return status == STATUS_OK;
}

/* The one that gets the plain name: the program's own process, else the only one there is. */
static size_t choose_first(const struct record_file *rings, size_t count, pid_t program)
{
    for (size_t i = 0; i < count; i++)
        if (rings[i].pid == program)
            return i;
    return count == 1 ? 0 : SIZE_MAX;
}

static bool collect_rings(const struct record_job *job, const struct record_file *rings, size_t count,
                          struct tally *tally)
{
    bool all = true, told_apart = name_tells_apart(job->output);
    size_t first = choose_first(rings, count, job->run.pid);
    for (size_t turn = 0; turn <= count; turn++) { /* the first one first */
        size_t i = turn == 0 ? first : turn - 1;
        if (i >= count || (turn > 0 && i == first))
            continue;
        if (rings[i].is_alive) {
            command_note("process %" PRId64 " still runs; its recording stays readable as %s", rings[i].pid,
                         rings[i].path);
            all = false;
            continue;
        }
        all &= collect_ring(job, &rings[i], i != first && !told_apart, tally);
    }
    tally->processes = count;
    return all;
}

static bool write_empty(const struct record_job *job, struct tally *tally)
{
    struct error err = {0};
    char host[256] = "";
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    if (!snapshot) {
        error_no_memory(&err);
        command_error(NULL, &err);
        return false;
    }
    gethostname(host, sizeof(host) - 1);
    struct process *process = &snapshot->processes[0];
    process->pid = job->run.pid;
    process->parent = getpid();
    process->rank = -1;
    process->start_time = job->run.start;
    process->end_time = job->run.end;
    process->implied_blocks = true;
    process->program = snapshot_string(snapshot, job->argv[0], strlen(job->argv[0]));
    process->host = snapshot_string(snapshot, host, strlen(host));
    add_facts(snapshot, job);
    char *name = record_output_name(job->output, job->argv[0], job->run.pid, -1, host, false);
    int status = name ? write_snapshot(snapshot, name, &err) : error_no_memory(&err);
    if (status)
        command_error(NULL, &err);
    else
        count_snapshot(snapshot, name, tally);
    free(name);
    snapshot_free(snapshot);
    return status == STATUS_OK;
}

static bool has_mark(const struct record_job *job, const char *word)
{
    struct record_file *files;
    size_t count;
    bool any = record_folder_marks(job->ring_folder, word, &files, &count, NULL) == STATUS_OK && count > 0;
    record_files_free(files, count);
    return any;
}

static void print_lines(const struct tally *tally)
{
    char lost[64] = "", ooms[64] = "", processes[64] = "";
    if (tally->lost)
        snprintf(lost, sizeof(lost), ", %" PRIu64 " older ones lost", tally->lost);
    if (tally->ooms)
        snprintf(ooms, sizeof(ooms), ", %" PRIu64 " out of memory", tally->ooms);
    if (tally->files > 1)
        snprintf(processes, sizeof(processes), " and %zu more, one a process", tally->files - 1);
    const char *name = tally->first ? tally->first : "";
    command_note("recorded %" PRIu64 " events%s%s in %s%s", tally->entries, lost, ooms, name, processes);
    if (tally->incomplete)
        command_note("the recording is incomplete: there was no room for all that it must keep (cudamem info says what "
                     "is missing)");
    command_note("peak reserved: %s",
                 tally->peaks.length ? text_string(&tally->peaks) : "nothing, no device memory was taken");
    if (tally->entries)
        command_note("next: cudamem summary %s", name);
    else
        command_note("next: cudamem help record (what is not seen, and why); --sim records without a GPU");
}

void record_collect(const struct record_job *job)
{
    struct tally tally = {0};
    struct record_file *rings = NULL;
    size_t count = 0;
    struct error err = {0};
    bool failed = has_mark(job, "failed"), unseen = has_mark(job, "unseen");
    if (record_folder_rings(job->ring_folder, &rings, &count, &err)) {
        command_error(NULL, &err);
    } else if (count > 0) {
        collect_rings(job, rings, count, &tally);
    } else if (failed) {
        command_note("nothing was recorded: the recorder had no room for its file (see above)");
    } else {
        write_empty(job, &tally);
        const char *bar = record_program_bar(job->argv[0]);
        if (bar)
            command_note("%s cannot be recorded: %s", job->argv[0], bar);
        if (unseen)
            command_note("0 CUDA calls seen although libcuda is mapped: none was made, or they go a way that is not "
                         "covered");
    }
    if (tally.files)
        print_lines(&tally);
    record_files_free(rings, count);
    record_folder_remove(job->ring_folder);
    text_free(&tally.peaks);
    free(tally.first);
}
