/* Ring files become snapshot files.  Uses snapshot, analyze, base and tools/ring_snapshot.h. */
#include "tools/record_collect.h"

#include "analyze/statistics.h"
#include "base/size.h"
#include "base/text.h"
#include "snapshot/snapshot.h"
#include "tools/command.h"
#include "tools/record_folder.h"
#include "tools/record_names.h"
#include "tools/record_program.h"
#include "tools/ring_snapshot.h"
#include "tools/torch_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TALLY_DEVICES 64

/* What the closing lines tell. */
struct tally {
    size_t files, processes;
    uint64_t entries, lost, ooms;
    uint64_t unrecorded; /* while it was paused */
    int64_t peaks[TALLY_DEVICES]; /* of each device: the most that one process had reserved; -1: not seen */
    char *first;       /* name of the first file */
    bool incomplete;
};

static void count_snapshot(const struct snapshot *snapshot, const char *path, struct tally *tally)
{
    bool first = tally->files++ == 0;
    tally->incomplete |= snapshot->processes[0].incomplete;
    tally->entries += snapshot->entries.count;
    tally->unrecorded += snapshot->processes[0].unrecorded;
    struct statistics_list list;
    bool is_known = statistics_collect(snapshot, &snapshot->end, NULL, NULL, &list, NULL) == STATUS_OK;
    for (size_t i = 0; i < snapshot->device_count; i++)
        tally->lost += snapshot->devices[i].lost_entries;
    for (size_t i = 0; is_known && i < list.count; i++) {
        const struct memory_stats *stats = &list.items[i].values;
        int64_t peak = stats->kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak;
        unsigned device = list.items[i].device;
        tally->ooms += (uint64_t)stats->num_ooms;
        if (snapshot->device_count && device < TALLY_DEVICES && peak > tally->peaks[device])
            tally->peaks[device] = peak;
    }
    if (is_known)
        statistics_free(&list);
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
    if (job->keep_args)
        ring_snapshot_arguments(snapshot, job->argv);
}

/* The ring's own process keeps its ring if it cannot be turned into a snapshot: it can be read as it is. */
static bool collect_ring(const struct record_job *job, const struct record_file *ring, bool with_pid, uint32_t image,
                         struct tally *tally)
{
    char word[32];
    struct snapshot *snapshot = NULL;
    struct error err = {0};
    if (ring_snapshot_read(ring->path, &snapshot, &err)) {
        command_error(ring->path, &err);
        return false;
    }
    if (job->torch_history && !image && !torch_history_join(ring->path, ring->pid, "end", &snapshot))
        torch_history_explain(ring->path, ring->pid, !snapshot->processes[0].implied_blocks);
    add_facts(snapshot, job);
    snprintf(word, sizeof(word), "exec%" PRIu32, image); /* before the program that the process became in the end */
    char *name = ring_snapshot_name(snapshot, job->output, with_pid, image ? word : NULL);
    int status = name ? ring_snapshot_write(snapshot, name, &err) : error_no_memory(&err);
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

/* The one that gets the plain name: the program's own process, one whose moments have it, else the only one there is. */
static size_t choose_first(const struct record_job *job, const struct record_file *rings, const uint32_t *images,
                           size_t count)
{
    int64_t wanted[2] = {job->run.pid, job->moments ? job->moments->plain : 0};
    for (size_t turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < count; i++)
            if (rings[i].pid == wanted[turn] && !(images && images[i]))
                return i;
    return count == 1 ? 0 : SIZE_MAX;
}

static bool collect_rings(const struct record_job *job, const struct record_file *rings, size_t count,
                          struct tally *tally)
{
    bool all = true, told_apart = ring_name_tells_apart(job->output);
    bool *unique = record_names_unique(rings, count, job->output);
    uint32_t *images = record_names_images(rings, count);
    size_t first = choose_first(job, rings, images, count);
    int64_t plain = first < count ? rings[first].pid : 0;
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
        bool with_pid = rings[i].pid != plain && !told_apart && !(unique && unique[i]);
        all &= collect_ring(job, &rings[i], with_pid, images ? images[i] : 0, tally);
    }
    free(unique);
    free(images);
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
    char *name = ring_name_make(&(struct ring_name){.pattern = job->output, .program = job->argv[0], .host = host,
                                                    .pid = job->run.pid, .rank = -1});
    int status = name ? ring_snapshot_write(snapshot, name, &err) : error_no_memory(&err);
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

static void print_moments(const struct record_moments *moments)
{
    char more[48] = "";
    if (moments->files > 1)
        snprintf(more, sizeof(more), " and %zu more", moments->files - 1);
    command_note("states kept on the way: %s%s", moments->first ? moments->first : "", more);
}

static void print_peaks(const struct tally *tally)
{
    char size[SIZE_TEXT];
    struct text peaks = {0};
    for (unsigned i = 0; i < TALLY_DEVICES; i++)
        if (tally->peaks[i] >= 0)
            text_printf(&peaks, "%sdevice %u %s", peaks.length ? ", " : "", i, size_format((uint64_t)tally->peaks[i], size));
    command_note("peak reserved: %s%s", peaks.length ? text_string(&peaks) : "nothing, no device memory was taken",
                 peaks.length && tally->files > 1 ? " (the most of one process)" : "");
    text_free(&peaks);
}

static void print_lines(const struct tally *tally)
{
    char lost[64] = "", ooms[64] = "", processes[64] = "";
    if (tally->lost)
        snprintf(lost, sizeof(lost), ", %" PRIu64 " older %s lost", tally->lost, tally->lost == 1 ? "one" : "ones");
    if (tally->ooms)
        snprintf(ooms, sizeof(ooms), ", %" PRIu64 " out of memory", tally->ooms);
    if (tally->files > 1)
        snprintf(processes, sizeof(processes), " and %zu more, one a process", tally->files - 1);
    const char *name = tally->first ? tally->first : "";
    command_note("recorded %" PRIu64 " event%s%s%s in %s%s", tally->entries, tally->entries == 1 ? "" : "s", lost, ooms, name,
                 processes);
    if (tally->incomplete)
        command_note("the recording is incomplete: there was no room for all that it must keep (cudamem info says what "
                     "is missing)");
    print_peaks(tally);
    if (tally->entries)
        command_note("next: cudamem %s %s", tally->ooms ? "explain" : "summary", name);
    else if (tally->unrecorded)
        command_note("next: cudamem ctl PID resume while the program runs; recording was paused to the end, what it held is "
                     "in %s", name);
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
    memset(tally.peaks, 0xff, sizeof(tally.peaks));
    if (job->moments)
        record_moments_end(job->moments);
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
    if (job->moments && job->moments->files)
        print_moments(job->moments);
    if (tally.files)
        print_lines(&tally);
    record_files_free(rings, count);
    if (job->torch_history)
        torch_history_clean(job->ring_folder);
    record_folder_remove(job->ring_folder);
    free(tally.first);
}
