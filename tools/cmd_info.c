/* cudamem info: what is in a file.  Uses analyze, render and base. */
#include "analyze/frame_text.h"
#include "analyze/info.h"
#include "analyze/usage.h"
#include "base/size.h"
#include "render/value_out.h"
#include "tools/command.h"
#include "tools/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const struct option_spec info_options[] = {
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

/* A fact that may not be known: null in JSON, nothing in text. */
static void text_out(struct emitter *emitter, const struct snapshot *snapshot, const char *key, uint32_t content)
{
    size_t length;
    const char *text = snapshot_content_text(snapshot, content, &length);
    if (content != STRING_NONE && length)
        emitter_string(emitter, key, text, length);
    else if (emitter_is_json(emitter))
        emitter_absent(emitter, key);
}

static void arguments_out(struct emitter *emitter, const struct snapshot *snapshot, uint32_t content)
{
    size_t length;
    const char *text = snapshot_content_text(snapshot, content, &length);
    if (content == STRING_NONE) {
        text_out(emitter, snapshot, "arguments", content);
        return;
    }
    emitter_begin_strings(emitter, "arguments");
    for (size_t at = 0; at < length;) {
        size_t part = strnlen(text + at, length - at);
        emitter_item(emitter, text + at, part);
        at += part + 1;
    }
    emitter_end_strings(emitter);
}

static void time_out(struct emitter *emitter, const char *key, int64_t time)
{
    if (time)
        emitter_time(emitter, key, time);
    else if (emitter_is_json(emitter))
        emitter_absent(emitter, key);
}

static void end_out(struct emitter *emitter, const struct process *process)
{
    if (process->exit_status == -1 || (!WIFEXITED(process->exit_status) && !WIFSIGNALED(process->exit_status))) {
        if (emitter_is_json(emitter)) {
            emitter_absent(emitter, "exit_status");
            emitter_absent(emitter, "signal");
        }
        return;
    }
    if (WIFEXITED(process->exit_status))
        emitter_integer(emitter, "exit_status", WEXITSTATUS(process->exit_status));
    else if (emitter_is_json(emitter))
        emitter_absent(emitter, "exit_status");
    if (WIFSIGNALED(process->exit_status))
        emitter_integer(emitter, "signal", WTERMSIG(process->exit_status));
    else if (emitter_is_json(emitter))
        emitter_absent(emitter, "signal");
}

static void process_out(struct emitter *emitter, const struct snapshot *snapshot, const struct process *process)
{
    char heading[32] = "";
    if (snapshot->process_count > 1)
        snprintf(heading, sizeof(heading), "process %zu", (size_t)(process - snapshot->processes));
    emitter_begin_object(emitter, NULL, heading);
    text_out(emitter, snapshot, "program", process->program);
    arguments_out(emitter, snapshot, process->arguments);
    if (process->pid || emitter_is_json(emitter))
        emitter_integer(emitter, "pid", process->pid);
    if (process->parent || emitter_is_json(emitter))
        emitter_integer(emitter, "parent", process->parent);
    text_out(emitter, snapshot, "host", process->host);
    text_out(emitter, snapshot, "boot_id", process->boot_id);
    text_out(emitter, snapshot, "driver", process->driver);
    if (process->rank >= 0)
        emitter_integer(emitter, "rank", process->rank);
    else if (emitter_is_json(emitter))
        emitter_absent(emitter, "rank");
    time_out(emitter, "start_time", process->start_time);
    time_out(emitter, "end_time", process->end_time);
    end_out(emitter, process);
    if (emitter_is_json(emitter) || process->implied_blocks)
        emitter_bool(emitter, "segments_are_blocks", process->implied_blocks);
    if (emitter_is_json(emitter) || process->incomplete)
        emitter_bool(emitter, "incomplete", process->incomplete);
    if (emitter_is_json(emitter) || process->lost_stacks)
        emitter_count(emitter, "lost_stacks", process->lost_stacks);
    if (emitter_is_json(emitter) || process->lost_state)
        emitter_count(emitter, "lost_live_allocations", process->lost_state);
    if (emitter_is_json(emitter) || process->unrecorded)
        emitter_count(emitter, "unrecorded", process->unrecorded);
    emitter_end(emitter);
}

static void uuid_text(const struct device *device, char text[40])
{
    for (int i = 0; i < 16; i++)
        text += snprintf(text, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", device->uuid[i]);
}

static void uuid_out(struct emitter *emitter, const struct device *device)
{
    char text[40] = "";
    if (device && device->has_uuid) {
        uuid_text(device, text);
        emitter_text(emitter, "uuid", text);
    } else if (emitter_is_json(emitter)) {
        emitter_absent(emitter, "uuid");
    }
}

/* A number that may not be known: null in JSON, nothing in text. */
static void size_or_absent(struct emitter *emitter, const char *key, uint64_t bytes)
{
    if (bytes)
        emitter_size(emitter, key, bytes);
    else if (emitter_is_json(emitter))
        emitter_absent(emitter, key);
}

/* What was taken when somebody looked last, and how much of that is known. */
static void sample_out(struct emitter *emitter, const struct device *device)
{
    struct usage_sample sample;
    bool seen = device && usage_sample(device, &sample);
    if (!seen && !emitter_is_json(emitter))
        return;
    if (!seen) {
        emitter_absent(emitter, "used_when_seen");
        emitter_absent(emitter, "known_when_seen");
        emitter_absent(emitter, "held_by_driver_pools");
        emitter_absent(emitter, "context_and_other");
        return;
    }
    emitter_size(emitter, "used_when_seen", sample.used);
    emitter_size(emitter, "known_when_seen", sample.known);
    emitter_size(emitter, "held_by_driver_pools", sample.pools);
    emitter_size(emitter, "context_and_other", sample.other);
}

static void device_out(struct emitter *emitter, const struct snapshot *snapshot, const struct info_device *counted)
{
    const struct device *device = counted->device != NONE32 ? &snapshot->devices[counted->device] : NULL;
    if (snapshot->process_count > 1 || emitter_is_json(emitter))
        emitter_count(emitter, "process", counted->process);
    emitter_count(emitter, "device", counted->ordinal);
    text_out(emitter, snapshot, "name", device ? device->name : STRING_NONE);
    uuid_out(emitter, device);
    size_or_absent(emitter, "total", device ? device->total : 0);
    size_or_absent(emitter, "free_at_end", device ? device->free_at_end : 0);
    sample_out(emitter, device);
    emitter_count(emitter, "entries", counted->entries);
    emitter_count(emitter, "lost_entries", counted->lost_entries);
    if (counted->max_entries)
        emitter_count(emitter, "max_entries", counted->max_entries);
    else if (emitter_is_json(emitter))
        emitter_absent(emitter, "max_entries");
    emitter_bool(emitter, "overflowed", counted->overflowed);
    emitter_count(emitter, "segments", counted->segments);
    emitter_size(emitter, "reserved", counted->reserved);
    emitter_count(emitter, "blocks", counted->blocks);
    emitter_size(emitter, "allocated", counted->allocated);
    emitter_size(emitter, "cached", counted->cached);
    emitter_count(emitter, "blocks_before_recording", counted->before_blocks);
    emitter_size(emitter, "allocated_before_recording", counted->before_bytes);
    emitter_size(emitter, "peak_requested", counted->peak_requested);
    emitter_size(emitter, "peak_reserved", counted->peak_reserved);
}

static void devices_out(struct emitter *emitter, const struct snapshot *snapshot, const struct info *info)
{
    emitter_begin_list(emitter, "devices", "");
    for (size_t i = 0; i < info->device_count; i++) {
        char heading[32];
        snprintf(heading, sizeof(heading), "device %u", info->devices[i].ordinal);
        emitter_begin_object(emitter, NULL, heading);
        device_out(emitter, snapshot, &info->devices[i]);
        emitter_end(emitter);
    }
    emitter_end(emitter);
}

/* GPUs that several of the processes have memory of. */
static void gpus_out(struct emitter *emitter, const struct snapshot *snapshot, const struct info *info)
{
    static const struct emitter_column columns[] = {{"uuid", NULL, EMITTER_STRING},
                                                    {"processes", NULL, EMITTER_NUMBER},
                                                    {"reserved", NULL, EMITTER_NUMBER},
                                                    {"allocated", NULL, EMITTER_NUMBER},
                                                    {"total", NULL, EMITTER_NUMBER}};
    if (!info->gpu_count)
        return;
    emitter_begin_table(emitter, "shared_gpus", NULL, columns, 5);
    for (size_t i = 0; i < info->gpu_count; i++) {
        const struct device *device = &snapshot->devices[info->gpus[i].device];
        char text[40];
        uuid_text(device, text);
        emitter_row(emitter);
        emitter_text(emitter, NULL, text);
        emitter_count(emitter, NULL, info->gpus[i].processes);
        emitter_size(emitter, NULL, info->gpus[i].reserved);
        emitter_size(emitter, NULL, info->gpus[i].allocated);
        if (device->total)
            emitter_size(emitter, NULL, device->total);
        else
            emitter_absent(emitter, NULL);
    }
    emitter_end(emitter);
}

static void trace_out(struct emitter *emitter, const struct info *info)
{
    emitter_begin_object(emitter, "trace", NULL);
    emitter_count(emitter, "entries", info->entries);
    emitter_count(emitter, "lost_entries", info->lost_entries);
    if (info->has_times) {
        emitter_time(emitter, "first_time", info->first_time);
        emitter_time(emitter, "last_time", info->last_time);
        int64_t span;
        if (!__builtin_sub_overflow(info->last_time, info->first_time, &span))
            emitter_duration(emitter, "time_span", span);
    } else if (emitter_is_json(emitter)) {
        emitter_absent(emitter, "first_time");
        emitter_absent(emitter, "last_time");
        emitter_absent(emitter, "time_span");
    }
    emitter_count(emitter, "stacks", info->stacks);
    emitter_count(emitter, "deepest_stack", info->deepest);
    emitter_count(emitter, "entries_without_stack", info->entries_without_stack);
    if (info->bad_entries || emitter_is_json(emitter))
        emitter_count(emitter, "bad_entries", info->bad_entries);
    emitter_bool(emitter, "recording_was_off", info->recording_was_off);
    emitter_end(emitter);
    emitter_begin_object(emitter, "actions", NULL);
    for (int action = 0; action < ACTION_COUNT; action++)
        if (info->actions[action] || emitter_is_json(emitter))
            emitter_count(emitter, action_name((enum action)action), info->actions[action]);
    emitter_end(emitter);
}

static void streams_out(struct emitter *emitter, const struct info *info)
{
    static const struct emitter_column streams[] = {
        {"stream", NULL, EMITTER_NUMBER}, {"entries", NULL, EMITTER_NUMBER}, {"segments", NULL, EMITTER_NUMBER}};
    static const struct emitter_column pools[] = {{"pool", NULL, EMITTER_STRING},
                                                  {"segments", NULL, EMITTER_NUMBER},
                                                  {"reserved", NULL, EMITTER_NUMBER},
                                                  {"allocated", NULL, EMITTER_NUMBER}};
    emitter_begin_table(emitter, "streams", NULL, streams, 3);
    for (size_t i = 0; i < info->stream_count; i++) {
        emitter_row(emitter);
        emitter_integer(emitter, NULL, info->streams[i].stream);
        emitter_count(emitter, NULL, info->streams[i].entries);
        emitter_count(emitter, NULL, info->streams[i].segments);
    }
    emitter_end(emitter);
    emitter_begin_table(emitter, "pools", NULL, pools, 4);
    for (size_t i = 0; i < info->pool_count; i++) {
        const struct info_pool *pool = &info->pools[i];
        char name[64];
        snprintf(name, sizeof(name), "%" PRId64 ":%" PRId64, pool->id[0], pool->id[1]);
        emitter_row(emitter);
        emitter_text(emitter, NULL, pool->is_known ? name : "unknown");
        emitter_count(emitter, NULL, pool->segments);
        emitter_size(emitter, NULL, pool->reserved);
        emitter_size(emitter, NULL, pool->allocated);
    }
    emitter_end(emitter);
}

/* Who asked for what is there, and of which kind it is. */
static void usage_out(struct emitter *emitter, const struct snapshot *snapshot, const struct usage *usage)
{
    static const struct emitter_column owners[] = {{"owner", NULL, EMITTER_STRING},
                                                   {"segments", NULL, EMITTER_NUMBER},
                                                   {"reserved", NULL, EMITTER_NUMBER},
                                                   {"allocated", NULL, EMITTER_NUMBER},
                                                   {"largest", NULL, EMITTER_NUMBER},
                                                   {"largest_from", NULL, EMITTER_STRING}};
    static const struct emitter_column kinds[] = {{"kind", NULL, EMITTER_STRING},
                                                  {"segments", NULL, EMITTER_NUMBER},
                                                  {"reserved", NULL, EMITTER_NUMBER},
                                                  {"of_device", NULL, EMITTER_STRING}};
    struct frame_texts *texts = frame_texts_new(snapshot);
    emitter_begin_table(emitter, "owners", NULL, owners, 6);
    for (size_t i = 0; i < usage->owner_count && texts; i++) {
        const struct usage_row *row = &usage->by_owner[i];
        uint32_t frame = owner_frame(&usage->owners, row->context);
        uint32_t label = frame == NONE32 ? FRAME_LEFT_OUT : frame_label(texts, frame);
        size_t length = 0;
        const char *text = label == FRAME_LEFT_OUT ? "" : frame_label_text(texts, label, &length);
        emitter_row(emitter);
        emitter_text(emitter, NULL, owner_name(&usage->owners, row->owner));
        emitter_count(emitter, NULL, row->segments);
        emitter_size(emitter, NULL, row->reserved);
        emitter_size(emitter, NULL, row->allocated);
        emitter_size(emitter, NULL, row->largest);
        emitter_string(emitter, NULL, text, length);
    }
    emitter_end(emitter);
    frame_texts_free(texts);
    emitter_begin_table(emitter, "kinds", NULL, kinds, 4);
    for (int kind = 0; kind < MEMORY_KIND_COUNT; kind++) {
        if (!usage->by_kind[kind].segments)
            continue;
        emitter_row(emitter);
        emitter_text(emitter, NULL, memory_kind_name((enum memory_kind)kind));
        emitter_count(emitter, NULL, usage->by_kind[kind].segments);
        emitter_size(emitter, NULL, usage->by_kind[kind].reserved);
        emitter_text(emitter, NULL, usage_is_devices((uint8_t)kind) ? "yes" : "no");
    }
    emitter_end(emitter);
}

static void settings_out(struct emitter *emitter, const struct snapshot *snapshot)
{
    emitter_begin_object(emitter, "settings", NULL);
    for (size_t i = 0; i < snapshot->setting_count; i++)
        value_out(emitter, snapshot, snapshot_content_text(snapshot, snapshot->settings[i].key, NULL),
                  snapshot->settings[i].content);
    emitter_end(emitter);
}

static void notes_out(struct emitter *emitter, const struct load *load, const struct info *info)
{
    uint64_t before = 0, blocks = 0, lost = 0;
    for (size_t i = 0; i < info->device_count; i++) {
        lost += info->devices[i].lost_entries;
        before += info->devices[i].before_bytes;
        blocks += info->devices[i].before_blocks;
        char whose[32] = "";
        if (load->snapshot->process_count > 1)
            snprintf(whose, sizeof(whose), " of process %u", info->devices[i].process);
        if (info->devices[i].lost_entries)
            emitter_note(emitter, "device %u%s: %" PRIu64 " events lost, the oldest ones, when the ring was full",
                         info->devices[i].ordinal, whose, info->devices[i].lost_entries);
    }
    if (info->unrecorded)
        emitter_note(emitter, "%" PRIu64 " events came while recording was paused, or before it was begun anew: what they "
                     "left alive is known, what came and went is not", info->unrecorded);
    if (info->recording_was_off)
        emitter_note(emitter, "recording was off: the file has segments but no trace");
    if (before) {
        char size[SIZE_TEXT];
        emitter_note(emitter, "%" PRIu64 " blocks, %s, %s", blocks, size_format(before, size),
                     lost ? "are older than the entries that are left" : "were allocated before recording");
    }
    if (!load->state->exact)
        emitter_note(emitter, "the trace tells requested sizes: block sizes of the past are rounded up from them");
}

/* Frameworks whose memory is a pool of their own: what lies in it is theirs to tell. */
static void pools_note(struct emitter *emitter, const struct usage *usage)
{
    for (size_t i = 0; i < usage->owner_count; i++) {
        const char *name = owner_name(&usage->owners, usage->by_owner[i].owner), *advice = owner_pool_advice(name);
        char size[SIZE_TEXT];
        if (advice)
            emitter_note(emitter, "%s keeps a pool of its own (%s): what is in use of it is not seen here; to see each "
                         "allocation: %s", name, size_format(usage->by_owner[i].reserved, size), advice);
    }
}

static void info_out(struct emitter *emitter, const struct load *load, const struct info *info, const struct usage *usage)
{
    const struct snapshot *snapshot = load->snapshot;
    emitter_text(emitter, "file", load->file);
    emitter_text(emitter, "source", info_source_name(snapshot));
    if (load->has_moment || emitter_is_json(emitter))
        emitter_count(emitter, "moment", load->moment);
    emitter_begin_list(emitter, "processes", "");
    for (size_t i = 0; i < snapshot->process_count; i++)
        process_out(emitter, snapshot, &snapshot->processes[i]);
    emitter_end(emitter);
    trace_out(emitter, info);
    devices_out(emitter, snapshot, info);
    gpus_out(emitter, snapshot, info);
    streams_out(emitter, info);
    if (snapshot->source == SOURCE_RECORDED)
        usage_out(emitter, snapshot, usage);
    settings_out(emitter, snapshot);
    emitter_count(emitter, "annotations", snapshot->annotation_count);
    emitter_count(emitter, "modules", snapshot->module_count);
    notes_out(emitter, load, info);
    if (snapshot->source == SOURCE_RECORDED)
        pools_note(emitter, usage);
}

static int info_run(struct command_line *line)
{
    struct load load;
    struct error err = {0};
    struct info info;
    struct output *output = NULL;
    int status = load_open(line, line->argument_count ? line->arguments[0] : NULL, LOAD_STATE, &load);
    if (status)
        return status;
    struct usage usage = {0};
    if (info_collect(load.snapshot, load.state, &info, &err) ||
        usage_collect(load.snapshot, load.state, &usage, &err)) {
        info_free(&info);
        status = command_error(load.file, &err);
        load_close(&load);
        return status;
    }
    status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options options = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &options);
        if (emitter)
            info_out(emitter, &load, &info, &usage);
        status = command_finish(emitter, output, EXIT_DONE);
    }
    usage_free(&usage);
    info_free(&info);
    load_close(&load);
    return status;
}

const struct command command_info = {
    .name = "info",
    .summary = "what is in a file: program, devices, settings, counts, what was lost",
    .arguments = "[FILE[@MOMENT]]",
    .least = 0,
    .most = 1,
    .options = info_options,
    .run = info_run,
};
