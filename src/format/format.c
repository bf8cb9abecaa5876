/* The table of formats; telling them apart by their first bytes.  Uses src/base and the readers and writers here. */
#include "format/format.h"

#include "format/bin_read.h"
#include "format/bin_write.h"
#include "format/csv_write.h"
#include "format/json_write.h"
#include "format/pickle_read.h"
#include "format/ring_read.h"
#include "format/rmm_read.h"
#include "format/slice.h"
#include "format/torch_read.h"
#include "format/torch_write.h"

#include <string.h>

#define FORMAT_START 4096 /* bytes that are looked at */
#define FORMAT_ACCEPTED                                                                                     \
    "accepted are snapshot.bin, a PyTorch snapshot pickle, a ring file and an RMM log (CSV), plain or gzip'ed"

/* Readers that know no ranges read all of it; what is not wanted goes afterwards. */
static int format_trim(struct snapshot **result, const struct format_options *options, struct error *err)
{
    struct snapshot *snapshot = *result;
    uint64_t count = snapshot->entries.count;
    uint64_t last = options->last_entry && options->last_entry < count ? options->last_entry : count;
    uint64_t first = options->first_entry < last ? options->first_entry : last;
    if (options->skip_traces)
        first = last = count; /* no entries, and the state at the end */
    if (first == 0 && last == count)
        return STATUS_OK;
    int status = slice_entries(snapshot, first, last, NULL, false, err);
    if (status) {
        snapshot_free(snapshot);
        *result = NULL;
    } else if (options->skip_traces) {
        snapshot->first_entry = 0;
    }
    return status;
}

static int read_bin(const char *path, struct input *input, const struct format_options *options,
                    struct snapshot **result, struct error *err)
{
    (void)path;
    return bin_read(input, options, result, err);
}

static int read_pickle(const char *path, struct input *input, const struct format_options *options,
                       struct snapshot **result, struct error *err)
{
    (void)path;
    struct torch_read_options torch = {.skip_traces = options->skip_traces};
    int status = torch_read(input, &torch, result, err);
    return status ? status : format_trim(result, options, err);
}

static int read_rmm(const char *path, struct input *input, const struct format_options *options,
                    struct snapshot **result, struct error *err)
{
    int status = rmm_read(input, rmm_device_of_name(path), result, err);
    return status ? status : format_trim(result, options, err);
}

static int read_ring(const char *path, struct input *input, const struct format_options *options,
                     struct snapshot **result, struct error *err)
{
    if (!path || !input_is_seekable(input))
        return error_set(err, STATUS_INPUT, "a ring file is read where it lies: name the file itself, not gzip'ed and "
                                            "not through a pipe");
    int status = ring_read(path, result, err);
    return status ? status : format_trim(result, options, err);
}

static int write_bin(const struct snapshot *snapshot, const struct format_write_options *options, struct output *output,
                     struct error *err)
{
    (void)options;
    return bin_write(snapshot, output, err);
}

static int write_pickle(const struct snapshot *snapshot, const struct format_write_options *options,
                        struct output *output, struct error *err)
{
    (void)options;
    return torch_write(snapshot, output, err);
}

static int write_json(const struct snapshot *snapshot, const struct format_write_options *options,
                      struct output *output, struct error *err)
{
    (void)options;
    return json_write(snapshot, output, err);
}

static int write_csv(const struct snapshot *snapshot, const struct format_write_options *options, struct output *output,
                     struct error *err)
{
    return csv_write(snapshot, options->view, output, err);
}

static const struct format formats[] = {
    {"bin", ".bin", "cudamem's own snapshot", true, bin_is_bin, read_bin, write_bin},
    {"ring", ".ring", "what a recorded process writes", true, ring_is_ring, read_ring, NULL},
    {"pickle", ".pickle", "PyTorch's memory snapshot", true, pickle_is_pickle, read_pickle, write_pickle},
    {"rmm", ".csv", "a log of RMM, the RAPIDS memory manager", false, rmm_is_log, read_rmm, NULL},
    {"json", ".json", "everything, for other programs", false, NULL, NULL, write_json},
    {"csv", ".csv", "a table for spreadsheets and databases", false, NULL, NULL, write_csv},
    {NULL},
};

const struct format *format_list(void)
{
    return formats;
}

const struct format *format_by_name(const char *name)
{
    for (const struct format *format = formats; format->name; format++)
        if (strcmp(format->name, name) == 0)
            return format;
    return NULL;
}

static bool starts_with(const unsigned char *start, size_t length, const char *text)
{
    size_t wanted = strlen(text);
    return length >= wanted && memcmp(start, text, wanted) == 0;
}

static bool is_text(const unsigned char *start, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((start[i] < 32 && start[i] != '\n' && start[i] != '\r' && start[i] != '\t' && start[i] != '\f') ||
            start[i] == 127)
            return false;
    return true;
}

/* What a file that we do not read may be: people mix up files, and say thanks for a hint. */
static const char *format_guess(const unsigned char *start, size_t length)
{
    size_t skip = 0;
    if (starts_with(start, length, "PK\3\4"))
        return "a zip archive, perhaps a model saved by torch.save";
    if (starts_with(start, length, "\x7f" "ELF"))
        return "a program or a library";
    if (starts_with(start, length, "SQLite format 3"))
        return "a database, perhaps a profile of nsys";
    if (starts_with(start, length, "\x28\xb5\x2f\xfd") || starts_with(start, length, "\xfd" "7zXZ") ||
        starts_with(start, length, "BZh"))
        return "a file compressed in another way than gzip";
    if (starts_with(start, length, "version https://git-lfs"))
        return "a pointer to a file of Git LFS, not the file";
    while (skip < length && (start[skip] == ' ' || start[skip] == '\n' || start[skip] == '\r' || start[skip] == '\t'))
        skip++;
    start += skip;
    length -= skip;
    if (length == 0 && skip)
        return "nothing but white space";
    if (starts_with(start, length, "<!DOCTYPE") || starts_with(start, length, "<!doctype") ||
        starts_with(start, length, "<html") || starts_with(start, length, "<HTML"))
        return "an HTML page, perhaps an error page instead of the file";
    if (starts_with(start, length, "<?xml") || starts_with(start, length, "<svg"))
        return "XML or SVG, a picture rather than a snapshot";
    if (length && (start[0] == '{' || start[0] == '[') && is_text(start, length))
        return "JSON, which is written but not read";
    if (length && is_text(start, length))
        return "text";
    size_t zeros = 0;
    while (zeros < length && !start[zeros])
        zeros++;
    return zeros == length ? "zeroes" : "binary data of another kind";
}

const struct format *format_detect(struct input *input, struct error *err)
{
    const unsigned char *start;
    size_t length;
    if (input_peek(input, FORMAT_START, &start, &length, err))
        return NULL;
    for (const struct format *format = formats; format->name; format++)
        if (format->detect && format->detect(start, length))
            return format;
    if (!length)
        error_set(err, STATUS_INPUT, "the file is empty; " FORMAT_ACCEPTED);
    else if (bin_is_start(start, length))
        error_at(err, STATUS_INPUT, length, "a snapshot.bin that is cut short");
    else
        error_set(err, STATUS_INPUT, "not a snapshot: it looks like %s; " FORMAT_ACCEPTED, format_guess(start, length));
    return NULL;
}

static int format_read_input(const char *path, struct input *input, const struct format_options *options,
                             struct snapshot **result, struct error *err)
{
    struct format_options all = FORMAT_OPTIONS_ALL;
    struct error own = {0};
    err = err ? err : &own;
    const struct format *format = format_detect(input, err);
    return format ? format->read(path, input, options ? options : &all, result, err) : err->status;
}

int format_read(const char *path, const struct format_options *options, struct snapshot **result, struct error *err)
{
    struct input *input;
    *result = NULL;
    int status = input_open(path, options ? options->max_input : 0, &input, err);
    if (status)
        return status;
    status = format_read_input(strcmp(path, "-") ? path : NULL, input, options, result, err);
    input_close(input);
    return status;
}

int format_read_memory(const void *bytes, size_t length, const struct format_options *options, struct snapshot **result,
                       struct error *err)
{
    struct input *input;
    *result = NULL;
    int status = input_from_memory(bytes, length, options ? options->max_input : 0, &input, err);
    if (status)
        return status;
    status = format_read_input(NULL, input, options, result, err);
    input_close(input);
    return status;
}

int format_write(const struct snapshot *snapshot, const char *format_name, const struct format_write_options *options,
                 struct output *output, struct error *err)
{
    struct format_write_options none = {0};
    const struct format *format = format_by_name(format_name);
    if (!format || !format->write)
        return error_set(err, STATUS_USAGE, "'%s' is no format that is written", format_name);
    return format->write(snapshot, options ? options : &none, output, err);
}
