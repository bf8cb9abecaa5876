/*
 * Output that appears whole or not at all.  Where the file system can, the temporary file has no name until the end,
 * so that not even a killed process leaves one.  Uses base/array.
 */
#include "base/output.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT_BUFFER = 64 * 1024 };

struct output {
    int fd;             /* -1: memory */
    char *target;       /* what the temporary file will replace; NULL: written in place */
    char *temporary;    /* its name, if it has one already */
    char *shown;        /* as the caller named it, for messages */
    bool close_fd;
    int failure;        /* errno of the first failed write */
    uint64_t offset;
    unsigned char *buffer; /* pending bytes; all bytes if memory */
    size_t used, capacity;
    unsigned char **memory_bytes;
    size_t *memory_length;
};

static void output_free(struct output *output)
{
    if (output->close_fd && output->fd >= 0)
        close(output->fd);
    free(output->target);
    free(output->temporary);
    free(output->shown);
    free(output->buffer);
    free(output);
}

static struct output *output_new(const char *shown)
{
    struct output *output = calloc(1, sizeof(*output));
    if (!output)
        return NULL;
    output->fd = -1;
    output->shown = strdup(shown);
    output->buffer = malloc(OUTPUT_BUFFER);
    output->capacity = OUTPUT_BUFFER;
    if (!output->shown || !output->buffer) {
        output_free(output);
        return NULL;
    }
    return output;
}

/* The folder of path, "." if it names none. */
static char *output_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Follow symbolic links, so that the link stays and what it names is replaced; also if that is not there yet. */
static char *output_resolve(const char *path)
{
    char *at = strdup(path);
    for (int step = 0; at && step < 40; step++) {
        char link[PATH_MAX];
        ssize_t length = readlink(at, link, sizeof(link) - 1);
        if (length < 0)
            return at;
        link[length] = '\0';
        char *next = NULL;
        if (link[0] == '/') {
            next = strdup(link);
        } else {
            char *folder = output_folder(at);
            if (folder && asprintf(&next, "%s/%s", folder, link) < 0)
                next = NULL;
            free(folder);
        }
        free(at);
        at = next;
    }
    return at;
}

static int output_cannot(const struct output *output, int code, struct error *err)
{
    if (code == EACCES || code == EPERM)
        return error_set(err, STATUS_OUTPUT, "cannot write %s: permission denied", output->shown);
    if (code == ENOENT)
        return error_set(err, STATUS_OUTPUT, "cannot write %s: its folder does not exist", output->shown);
    return error_set(err, STATUS_OUTPUT, "cannot write %s: %s", output->shown, strerror(code));
}

/* A free name beside the target, for a new file or for linking one. */
static char *output_beside(const char *target, unsigned attempt)
{
    char *folder = output_folder(target), *name = NULL;
    const char *slash = strrchr(target, '/');
    if (folder && asprintf(&name, "%s/.%.200s.%ld.%u", folder, slash ? slash + 1 : target, (long)getpid(), attempt) < 0)
        name = NULL;
    free(folder);
    return name;
}

enum { OUTPUT_ATTEMPTS = 1000 };

static int output_open_named(struct output *output)
{
    for (unsigned attempt = 0; attempt < OUTPUT_ATTEMPTS; attempt++) {
        output->temporary = output_beside(output->target, attempt);
        if (!output->temporary)
            return ENOMEM;
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (output->fd >= 0)
            return 0;
        int code = errno;
        free(output->temporary);
        output->temporary = NULL;
        if (code != EEXIST)
            return code;
    }
    return EEXIST;
}

static int output_open_temporary(struct output *output, const struct stat *existing)
{
    char *folder = output_folder(output->target);
    if (!folder)
        return ENOMEM;
    int code = 0;
    output->fd = access("/proc/self/fd", X_OK) ? -1 : open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(folder);
    if (output->fd < 0)
        code = output_open_named(output);
    if (!code && existing && fchmod(output->fd, existing->st_mode & 0777))
        code = 0; /* not ours to change: the new file keeps the mode of a new one */
    return code;
}

static int output_open_path(struct output *output, const char *path, struct error *err)
{
    struct stat existing;
    output->close_fd = true;
    if (!*path)
        return error_set(err, STATUS_OUTPUT, "cannot write a file without a name");
    bool exists = stat(path, &existing) == 0;
    if (exists && S_ISDIR(existing.st_mode))
        return error_set(err, STATUS_OUTPUT, "cannot write %s: it is a folder", output->shown);
    if (exists && !S_ISREG(existing.st_mode)) {
        output->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return output->fd < 0 ? output_cannot(output, errno, err) : STATUS_OK;
    }
    if (exists && access(path, W_OK))
        return output_cannot(output, errno, err);
    output->target = output_resolve(path);
    if (!output->target)
        return error_no_memory(err);
    int code = output_open_temporary(output, exists ? &existing : NULL);
    return code ? output_cannot(output, code, err) : STATUS_OK;
}

int output_open(const char *path, struct output **result, struct error *err)
{
    *result = NULL;
    bool is_stdout = !path || strcmp(path, "-") == 0;
    struct output *output = output_new(is_stdout ? "standard output" : path);
    if (!output)
        return error_no_memory(err);
    if (is_stdout) {
        output->fd = STDOUT_FILENO;
    } else {
        int status = output_open_path(output, path, err);
        if (status) {
            output_free(output);
            return status;
        }
    }
    *result = output;
    return STATUS_OK;
}

int output_to_memory(unsigned char **bytes, size_t *length, struct output **result, struct error *err)
{
    *result = output_new("memory");
    if (!*result)
        return error_no_memory(err);
    (*result)->memory_bytes = bytes;
    (*result)->memory_length = length;
    return STATUS_OK;
}

static void output_send(struct output *output, const unsigned char *bytes, size_t length)
{
    while (length && !output->failure) {
        ssize_t sent = write(output->fd, bytes, length);
        if (sent < 0) {
            if (errno != EINTR)
                output->failure = errno;
            continue;
        }
        bytes += sent;
        length -= (size_t)sent;
    }
}

static void output_flush(struct output *output)
{
    output_send(output, output->buffer, output->used);
    output->used = 0;
}

static bool output_is_memory(const struct output *output)
{
    return output->memory_bytes != NULL;
}

void output_write(struct output *output, const void *bytes, size_t length)
{
    if (output->failure || !length)
        return;
    if (length > output->capacity - output->used) {
        if (output_is_memory(output)) {
            size_t need;
            if (add_overflows(output->used, length, &need) || array_reserve(&output->buffer, &output->capacity, need, 1)) {
                output->failure = ENOMEM;
                return;
            }
        } else {
            output_flush(output);
            if (length >= output->capacity) {
                output_send(output, bytes, length);
                output->offset += length;
                return;
            }
        }
    }
    memcpy(output->buffer + output->used, bytes, length);
    output->used += length;
    output->offset += length;
}

void output_text(struct output *output, const char *string)
{
    output_write(output, string, strlen(string));
}

void output_char(struct output *output, char c)
{
    if (output->used < output->capacity && !output->failure) {
        output->buffer[output->used++] = (unsigned char)c;
        output->offset++;
    } else {
        output_write(output, &c, 1);
    }
}

void output_printf(struct output *output, const char *format, ...)
{
    char fixed[512], *text = fixed;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(fixed, sizeof(fixed), format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof(fixed)) {
        va_start(arguments, format);
        length = vasprintf(&text, format, arguments);
        va_end(arguments);
    }
    if (length < 0) {
        output->failure = output->failure ? output->failure : ENOMEM;
        return;
    }
    output_write(output, text, (size_t)length);
    if (text != fixed)
        free(text);
}

uint64_t output_offset(const struct output *output)
{
    return output->offset;
}

bool output_is_terminal(const struct output *output)
{
    return output->fd >= 0 && isatty(output->fd);
}

bool output_failed(const struct output *output)
{
    return output->failure != 0;
}

bool output_pipe_closed(const struct output *output)
{
    return output->failure == EPIPE;
}

/* Give a file without a name one beside the target. */
static int output_name(struct output *output)
{
    char source[64];
    snprintf(source, sizeof(source), "/proc/self/fd/%d", output->fd);
    for (unsigned attempt = 0; attempt < OUTPUT_ATTEMPTS; attempt++) {
        char *name = output_beside(output->target, attempt);
        if (!name)
            return ENOMEM;
        if (linkat(AT_FDCWD, source, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            output->temporary = name;
            return 0;
        }
        int code = errno;
        free(name);
        if (code != EEXIST)
            return code;
    }
    return EEXIST;
}

static void output_settle(struct output *output)
{
    output_flush(output);
    if (output->target && !output->temporary && !output->failure)
        output->failure = output_name(output);
    if (output->close_fd) {
        if (close(output->fd) && !output->failure) /* network file systems tell of a full disk only here */
            output->failure = errno;
        output->fd = -1;
    }
    if (output->target && !output->failure && rename(output->temporary, output->target))
        output->failure = errno;
}

int output_commit(struct output *output, struct error *err)
{
    int status = STATUS_OK;
    if (!output_is_memory(output))
        output_settle(output);
    if (output->failure) {
        status = output_is_memory(output) ? error_no_memory(err) : output_cannot(output, output->failure, err);
        if (output->temporary)
            unlink(output->temporary);
    } else if (output_is_memory(output)) {
        *output->memory_bytes = output->buffer;
        *output->memory_length = output->used;
        output->buffer = NULL;
    }
    output_free(output);
    return status;
}

void output_abandon(struct output *output)
{
    if (!output)
        return;
    if (output->temporary)
        unlink(output->temporary);
    output_free(output);
}
