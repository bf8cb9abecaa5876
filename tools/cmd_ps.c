/* cudamem ps: the processes on the GPUs and their memory; left-over ring files. */
#include "device/nvml.h"
#include "tools/command.h"
#include "tools/record_folder.h"
#include "tools/stale.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option_spec ps_options[] = {
    {"device", 0, "N", OPTION_NUMBER, "only this device"},
    {"stale", 0, NULL, OPTION_FLAG, "list left-over ring files instead"},
    {"remove", 0, NULL, OPTION_FLAG, "with --stale: remove those that nobody uses"},
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

static const struct emitter_column ps_columns[] = {
    {"device", NULL, EMITTER_NUMBER}, {"pid", NULL, EMITTER_NUMBER},  {"used", NULL, EMITTER_NUMBER},
    {"kind", NULL, EMITTER_STRING},   {"name", NULL, EMITTER_STRING},
};

static const struct emitter_column ps_stale_columns[] = {
    {"pid", NULL, EMITTER_NUMBER},     {"size", NULL, EMITTER_NUMBER}, {"modified", NULL, EMITTER_NUMBER},
    {"state", NULL, EMITTER_STRING},   {"program", NULL, EMITTER_STRING}, {"file", NULL, EMITTER_STRING},
};

static struct emitter *ps_emitter(const struct command_line *line, struct output *output)
{
    struct emitter_options options = command_emitter_options(line);
    return emitter_new(output, &options);
}

static void ps_rows(struct emitter *emitter, const struct nvml_process *processes, size_t count, uint64_t only)
{
    emitter_begin_table(emitter, "processes", "", ps_columns, sizeof(ps_columns) / sizeof(ps_columns[0]));
    for (size_t i = 0; i < count; i++) {
        if (only != UINT64_MAX && only != processes[i].device)
            continue;
        emitter_row(emitter);
        emitter_count(emitter, NULL, processes[i].device);
        emitter_count(emitter, NULL, processes[i].pid);
        if (processes[i].has_used)
            emitter_size(emitter, NULL, processes[i].used);
        else
            emitter_absent(emitter, NULL);
        emitter_text(emitter, NULL, processes[i].graphics ? "graphics" : "compute");
        emitter_text(emitter, NULL, *processes[i].name ? processes[i].name : NULL);
    }
    emitter_end(emitter);
    if (!count)
        emitter_note(emitter, "no processes are on the GPUs, or they are not shown to this user");
}

static int ps_processes(struct command_line *line)
{
    struct error err = {0};
    struct nvml *nvml;
    struct nvml_process *processes;
    struct output *output;
    size_t count;
    if (options_has(line, "remove"))
        return command_usage(line->command, "--remove goes with --stale");
    if (nvml_open(&nvml, &err))
        return command_error(NULL, &err);
    int failed = nvml_processes(nvml, &processes, &count, &err);
    nvml_close(nvml);
    if (failed)
        return command_error(NULL, &err);
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter *emitter = ps_emitter(line, output);
        if (emitter)
            ps_rows(emitter, processes, count, options_number(line, "device", UINT64_MAX));
        status = command_finish(emitter, output, EXIT_DONE);
    }
    free(processes);
    return status;
}

/* What became of a file: it stays, is gone now, or could not be removed. */
static const char *ps_stale_state(const struct stale *item, bool remove, int *status)
{
    if (item->in_use)
        return "in use";
    if (!remove)
        return "left over";
    if (unlink(item->path) == 0 || errno == ENOENT) {
        char *slash = strrchr(item->path, '/');
        *slash = '\0';
        if (strstr(item->path, "/" RECORD_FOLDER_PREFIX))
            record_folder_remove(item->path); /* if it is empty now */
        *slash = '/';
        return "removed";
    }
    struct error err;
    error_set(&err, STATUS_OUTPUT, "cannot remove it: %s", strerror(errno));
    *status = command_error(item->path, &err);
    return "left over";
}

static int ps_stale(struct command_line *line)
{
    struct error err = {0};
    struct stale *list;
    struct output *output;
    size_t count;
    int removal = EXIT_DONE;
    if (stale_list(&list, &count, &err))
        return command_error(NULL, &err);
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter *emitter = ps_emitter(line, output);
        if (emitter) {
            emitter_begin_table(emitter, "files", "", ps_stale_columns, sizeof(ps_stale_columns) / sizeof(ps_stale_columns[0]));
            for (size_t i = 0; i < count; i++) {
                emitter_row(emitter);
                emitter_count(emitter, NULL, (uint64_t)list[i].pid);
                emitter_size(emitter, NULL, list[i].size);
                emitter_time(emitter, NULL, list[i].modified);
                emitter_text(emitter, NULL, ps_stale_state(&list[i], options_has(line, "remove"), &removal));
                emitter_text(emitter, NULL, *list[i].program ? list[i].program : NULL);
                emitter_text(emitter, NULL, list[i].path);
            }
            emitter_end(emitter);
            if (!count)
                emitter_note(emitter, "no ring files were left over");
        }
        status = command_finish(emitter, output, EXIT_DONE);
    }
    stale_free(list, count);
    return status ? status : removal;
}

static int ps_run(struct command_line *line)
{
    return options_has(line, "stale") ? ps_stale(line) : ps_processes(line);
}

const struct command command_ps = {
    .name = "ps",
    .summary = "processes on the GPUs and their memory; left-over ring files",
    .arguments = "",
    .options = ps_options,
    .run = ps_run,
};
