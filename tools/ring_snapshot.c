/* From a ring file to a snapshot file.  Uses format, symbol, snapshot and base. */
#include "tools/ring_snapshot.h"

#include "base/output.h"
#include "base/text.h"
#include "format/format.h"
#include "symbol/symbolize.h"
#include "tools/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int ring_snapshot_read(const char *path, struct snapshot **snapshot, struct error *err)
{
    struct error unnamed = {0};
    int status = format_read(path, NULL, snapshot, err);
    if (!status && symbolize_snapshot(*snapshot, NULL, &unnamed))
        command_error(path, &unnamed); /* names can be looked up later */
    return status;
}

void ring_snapshot_arguments(struct snapshot *snapshot, char **argv)
{
    struct text arguments = {0};
    for (char **argument = argv; *argument; argument++)
        text_append(&arguments, *argument, strlen(*argument) + (argument[1] ? 1 : 0));
    if (!text_failed(&arguments))
        snapshot->processes[0].arguments = snapshot_string(snapshot, text_string(&arguments), arguments.length);
    text_free(&arguments);
}

int ring_snapshot_kept_at(struct snapshot *snapshot, const char *moment)
{
    uint32_t key = snapshot_string(snapshot, "kept_at", strlen("kept_at"));
    uint32_t content = snapshot_shared_string(snapshot, moment, strlen(moment));
    bool failed = key == STRING_NONE || content == STRING_NONE ||
                  snapshot_add_setting(snapshot, key, value_make(VALUE_STRING, content)) == NONE32;
    return failed ? STATUS_NO_MEMORY : STATUS_OK;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void fill_in(const struct ring_name *name, struct text *text)
{
    for (const char *c = name->pattern; *c; c++) {
        if (*c != '%' || !c[1]) {
            text_char(text, *c);
            continue;
        }
        switch (*++c) {
        case 'p': text_printf(text, "%" PRId64, name->pid); break;
        case 'r': text_printf(text, "%" PRId64, name->rank < 0 ? 0 : name->rank); break;
        case 'h': text_add(text, name->host); break;
        case 'n': text_add(text, last_part(name->program)); break;
        case '%': text_char(text, '%'); break;
        default:
            text_char(text, '%');
            text_char(text, *c);
        }
    }
}

char *ring_name_make(const struct ring_name *name)
{
    struct text plain = {0}, whole = {0};
    fill_in(name, &plain);
    const char *text = text_string(&plain), *last = last_part(text), *dot = strrchr(last, '.');
    size_t stem = dot && dot != last ? (size_t)(dot - text) : strlen(text);
    text_append(&whole, text, stem);
    if (name->with_pid)
        text_printf(&whole, ".%" PRId64, name->pid);
    if (name->word)
        text_printf(&whole, ".%s", name->word);
    text_add(&whole, text + stem);
    char *result = text_failed(&plain) || text_failed(&whole) ? NULL : strdup(text_string(&whole));
    text_free(&plain);
    text_free(&whole);
    return result;
}

char *ring_snapshot_name(const struct snapshot *snapshot, const char *pattern, bool with_pid, const char *word)
{
    const struct process *process = &snapshot->processes[0];
    return ring_name_make(&(struct ring_name){
        .pattern = pattern, .program = snapshot_content_text(snapshot, process->program, NULL),
        .host = snapshot_content_text(snapshot, process->host, NULL), .pid = process->pid, .rank = process->rank,
        .with_pid = with_pid, .word = word});
}

bool ring_name_tells_apart(const char *pattern)
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

int ring_snapshot_write(const struct snapshot *snapshot, const char *path, struct error *err)
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
