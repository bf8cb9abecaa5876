/* cudamem mem: free, used and total memory of each device. */
#include "device/nvml.h"
#include "tools/command.h"

#include <stdlib.h>
#include <string.h>

static const struct option_spec mem_options[] = {
    {"device", 0, "N", OPTION_NUMBER, "only this device"},
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

static const struct emitter_column mem_columns[] = {
    {"device", NULL, EMITTER_NUMBER}, {"total", NULL, EMITTER_NUMBER}, {"used", NULL, EMITTER_NUMBER},
    {"free", NULL, EMITTER_NUMBER},   {"name", NULL, EMITTER_STRING},  {"uuid", NULL, EMITTER_STRING},
};

static void mem_row(struct emitter *emitter, const struct nvml_device *device)
{
    emitter_row(emitter);
    emitter_count(emitter, NULL, device->index);
    if (device->has_memory) {
        emitter_size(emitter, NULL, device->total);
        emitter_size(emitter, NULL, device->used);
        emitter_size(emitter, NULL, device->free);
    } else {
        emitter_absent(emitter, NULL);
        emitter_absent(emitter, NULL);
        emitter_absent(emitter, NULL);
    }
    emitter_text(emitter, NULL, *device->name ? device->name : NULL);
    emitter_text(emitter, NULL, *device->uuid ? device->uuid : NULL);
}

static int mem_run(struct command_line *line)
{
    struct error err = {0};
    struct nvml *nvml;
    struct nvml_device *devices;
    struct output *output;
    size_t count;
    uint64_t only = options_number(line, "device", UINT64_MAX);
    if (nvml_open(&nvml, &err))
        return command_error(NULL, &err);
    int failed = nvml_devices(nvml, &devices, &count, &err);
    nvml_close(nvml);
    if (!failed && only != UINT64_MAX && only >= count) {
        free(devices);
        failed = error_set(&err, STATUS_NOT_FOUND, "there is no device %llu: this machine has %zu",
                           (unsigned long long)only, count);
    }
    if (failed)
        return command_error(NULL, &err);
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options options = command_emitter_options(line);
        struct emitter *emitter = emitter_new(output, &options);
        if (emitter) {
            emitter_begin_table(emitter, "devices", "", mem_columns, sizeof(mem_columns) / sizeof(mem_columns[0]));
            for (size_t i = 0; i < count; i++)
                if (only == UINT64_MAX || only == i)
                    mem_row(emitter, &devices[i]);
            emitter_end(emitter);
        }
        status = command_finish(emitter, output, EXIT_DONE);
    }
    free(devices);
    return status;
}

const struct command command_mem = {
    .name = "mem",
    .summary = "free and total memory of each GPU, now",
    .arguments = "",
    .options = mem_options,
    .run = mem_run,
};
