/*
 * Reading a stranger's file: one window over decoded bytes, refilled from a descriptor or from memory, unpacked on the
 * way if it is gzip.  Uses base/array, base/size and zlib.
 */
#include "base/input.h"

#include "base/array.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    INPUT_PEEK = 64 * 1024,     /* the most a caller may want to see at once */
    INPUT_WINDOW = 256 * 1024,  /* stays in the second-level cache while it is parsed */
    INPUT_PACKED = 128 * 1024,
};

struct input {
    const unsigned char *at, *end; /* decoded and not yet consumed */
    unsigned char *window;         /* NULL: at and end point into the caller's memory */
    uint64_t decoded;              /* bytes up to end */
    uint64_t limit;
    bool is_gzip, at_end, failed, seekable;
    struct error failure;

    int fd; /* -1: memory */
    bool close_fd;
    uint64_t size;                 /* of the source, if seekable */
    const unsigned char *memory;   /* of the source, if fd is -1 */
    size_t memory_length, memory_at;

    unsigned char *packed; /* gzip: bytes of the source not yet unpacked */
    bool source_end, in_member;
    bool has_stream;
    z_stream stream;
};

static uint64_t input_free_memory(void)
{
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file) {
        char line[128];
        while (fgets(line, sizeof(line), file) && sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
            ;
        fclose(file);
    }
    return kib ? (uint64_t)kib * 1024 : UINT64_C(8) << 30;
}

static int input_fail(struct input *input, int status, const char *message)
{
    input->failed = true;
    return error_at(&input->failure, status, input->decoded, "%s", message);
}

/* Up to length bytes of the source; 0 at its end, -1 with the failure noted. */
static ssize_t input_source(struct input *input, unsigned char *to, size_t length)
{
    if (input->fd < 0) {
        size_t left = input->memory_length - input->memory_at;
        size_t take = left < length ? left : length;
        if (take)
            memcpy(to, input->memory + input->memory_at, take);
        input->memory_at += take;
        return (ssize_t)take;
    }
    ssize_t got;
    do
        got = read(input->fd, to, length);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        char message[160];
        snprintf(message, sizeof(message), "cannot be read: %s", strerror(errno));
        input_fail(input, STATUS_INPUT, message);
    }
    return got;
}

/* Make sure that the unpacker has at least `want` source bytes before it, unless the source ends. */
static int input_source_peek(struct input *input, size_t want)
{
    z_stream *stream = &input->stream;
    if (stream->avail_in >= want || input->source_end)
        return STATUS_OK;
    if (stream->avail_in)
        memmove(input->packed, stream->next_in, stream->avail_in);
    stream->next_in = input->packed;
    while (stream->avail_in < want) {
        ssize_t got = input_source(input, input->packed + stream->avail_in, INPUT_PACKED - stream->avail_in);
        if (got < 0)
            return input->failure.status;
        if (got == 0) {
            input->source_end = true;
            break;
        }
        stream->avail_in += (uInt)got;
    }
    return STATUS_OK;
}

/* Between members: another one, padding with zeros, or the end. */
static int input_next_member(struct input *input)
{
    z_stream *stream = &input->stream;
    for (;;) {
        if (input_source_peek(input, 2))
            return input->failure.status;
        if (stream->avail_in == 0) {
            input->at_end = true;
            return STATUS_OK;
        }
        if (stream->next_in[0] != 0)
            break;
        stream->next_in++;
        stream->avail_in--;
    }
    if (stream->avail_in < 2 || stream->next_in[0] != 0x1f || stream->next_in[1] != 0x8b)
        return input_fail(input, STATUS_INPUT, "damaged gzip data: something else follows the compressed data");
    if (inflateReset(stream) != Z_OK)
        return input_fail(input, STATUS_NO_MEMORY, "out of memory for unpacking");
    input->in_member = true;
    return STATUS_OK;
}

/* Unpack until the room given to the stream is full or everything is unpacked. */
static int input_inflate(struct input *input)
{
    z_stream *stream = &input->stream;
    while (stream->avail_out && !input->at_end) {
        if (!input->in_member) {
            if (input_next_member(input))
                return input->failure.status;
            continue;
        }
        if (input_source_peek(input, 1))
            return input->failure.status;
        if (!stream->avail_in)
            return input_fail(input, STATUS_INPUT, "cut short: it ends in the middle of compressed data");
        int result = inflate(stream, Z_NO_FLUSH);
        if (result == Z_STREAM_END)
            input->in_member = false;
        else if (result == Z_MEM_ERROR)
            return input_fail(input, STATUS_NO_MEMORY, "out of memory for unpacking");
        else if (result != Z_OK && result != Z_BUF_ERROR) {
            char message[160];
            snprintf(message, sizeof(message), "damaged gzip data: %s", stream->msg ? stream->msg : "it makes no sense");
            return input_fail(input, STATUS_INPUT, message);
        }
    }
    return STATUS_OK;
}

static int input_fill_gzip(struct input *input, unsigned char *to, size_t room, size_t *got)
{
    input->stream.next_out = to;
    input->stream.avail_out = (uInt)room;
    int status = input_inflate(input);
    *got = room - input->stream.avail_out;
    if (status)
        input->failure.offset += *got;
    return status;
}

static int input_over_limit(struct input *input)
{
    char limit[SIZE_TEXT], message[200];
    snprintf(message, sizeof(message), "%s more than the limit of %s; allow more with --max-input SIZE",
             input->is_gzip ? "unpacks to" : "is", size_format(input->limit, limit));
    return input_fail(input, STATUS_NO_MEMORY, message);
}

/* Decode to `to`: at most room bytes, at least one unless the end comes. */
static int input_decode(struct input *input, unsigned char *to, size_t room, size_t *got)
{
    *got = 0;
    if (input->failed)
        return input->failure.status;
    if (input->at_end)
        return STATUS_OK;
    if (input->is_gzip) {
        if (input_fill_gzip(input, to, room, got))
            return input->failure.status;
    } else {
        ssize_t count = input_source(input, to, room);
        if (count < 0)
            return input->failure.status;
        input->at_end = count == 0;
        *got = (size_t)count;
    }
    input->decoded += *got;
    return input->decoded > input->limit ? input_over_limit(input) : STATUS_OK;
}

static int input_report(const struct input *input, struct error *err)
{
    if (err)
        *err = input->failure;
    return input->failure.status;
}

/* Slide what is left to the window's front and decode until `want` bytes are there. */
static int input_refill(struct input *input, size_t want, struct error *err)
{
    if (input->failed)
        return input_report(input, err);
    if (!input->window)
        return STATUS_OK;
    size_t left = (size_t)(input->end - input->at);
    if (left)
        memmove(input->window, input->at, left);
    input->at = input->window;
    input->end = input->window + left;
    while (left < want && !input->at_end) {
        size_t got;
        if (input_decode(input, input->window + left, INPUT_WINDOW - left, &got))
            return input_report(input, err);
        left += got;
        input->end = input->window + left;
    }
    return STATUS_OK;
}

int input_peek(struct input *input, size_t want, const unsigned char **bytes, size_t *available, struct error *err)
{
    size_t left = (size_t)(input->end - input->at);
    if (__builtin_expect(left < want || input->failed, 0)) {
        if (want > INPUT_PEEK)
            want = INPUT_PEEK;
        int status = input_refill(input, want, err);
        if (status)
            return status;
        left = (size_t)(input->end - input->at);
    }
    *bytes = input->at;
    *available = left;
    return STATUS_OK;
}

void input_skip(struct input *input, size_t count)
{
    size_t left = (size_t)(input->end - input->at);
    input->at += count < left ? count : left;
}

int input_read(struct input *input, void *buffer, size_t length, const char *what, struct error *err)
{
    unsigned char *to = buffer;
    while (length) {
        size_t left = (size_t)(input->end - input->at);
        if (left) {
            size_t take = left < length ? left : length;
            memcpy(to, input->at, take);
            input->at += take;
            to += take;
            length -= take;
            continue;
        }
        size_t got = 0;
        if (input->failed)
            return input_report(input, err);
        if (input->window && length >= INPUT_WINDOW) { /* long: straight to where it goes */
            if (input_decode(input, to, length < INT32_MAX ? length : INT32_MAX, &got))
                return input_report(input, err);
            to += got;
            length -= got;
        } else if (input->window) {
            if (input_refill(input, 1, err))
                return input->failure.status;
            got = (size_t)(input->end - input->at);
        }
        if (!got)
            return error_at(err, STATUS_INPUT, input_offset(input), "cut short: it ends in the middle of %s", what);
    }
    return STATUS_OK;
}

int input_read_all(struct input *input, unsigned char **bytes, size_t *length, struct error *err)
{
    unsigned char *all = NULL;
    size_t used = 0, capacity = 0;
    uint64_t expect = input->seekable ? input->size - input_offset(input) : 0;
    if (expect && expect <= input->limit && expect < SIZE_MAX / 2)
        array_reserve(&all, &capacity, (size_t)expect + 1, 1); /* a hint; too big a one shows below */
    for (;;) {
        const unsigned char *some;
        size_t available;
        int status = input_peek(input, 1, &some, &available, err);
        if (!status && !available)
            break;
        if (!status && array_reserve(&all, &capacity, used + available, 1))
            status = error_no_memory(err);
        if (status) {
            free(all);
            return status;
        }
        memcpy(all + used, some, available);
        used += available;
        input_skip(input, available);
    }
    if (!all && !(all = malloc(1)))
        return error_no_memory(err);
    *bytes = all;
    *length = used;
    return STATUS_OK;
}

int input_check_end(struct input *input, struct error *err)
{
    while (input->is_gzip) {
        const unsigned char *bytes;
        size_t available;
        int status = input_peek(input, 1, &bytes, &available, err);
        if (status || !available)
            return status;
        input_skip(input, available);
    }
    return STATUS_OK;
}

bool input_is_seekable(const struct input *input)
{
    return input->seekable;
}

uint64_t input_size(const struct input *input)
{
    return input->size;
}

int input_read_at(struct input *input, uint64_t offset, void *buffer, size_t length, struct error *err)
{
    if (!input->seekable)
        return error_set(err, STATUS_UNSUPPORTED, "cannot be read at any place: it is a pipe or compressed");
    uint64_t end;
    if (__builtin_add_overflow(offset, (uint64_t)length, &end) || end > input->size)
        return error_at(err, STATUS_INPUT, offset < input->size ? offset : input->size,
                        "cut short: it ends before the %zu bytes that should be at byte %llu", length,
                        (unsigned long long)offset);
    if (input->fd < 0) {
        if (length)
            memcpy(buffer, input->memory + offset, length);
        return STATUS_OK;
    }
    unsigned char *to = buffer;
    while (length) {
        ssize_t got = pread(input->fd, to, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_at(err, STATUS_INPUT, offset, "cannot be read: %s", strerror(errno));
        if (got == 0)
            return error_at(err, STATUS_INPUT, offset, "became shorter while it was read");
        to += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return STATUS_OK;
}

uint64_t input_offset(const struct input *input)
{
    return input->decoded - (uint64_t)(input->end - input->at);
}

bool input_is_gzip(const struct input *input)
{
    return input->is_gzip;
}

uint64_t input_limit(const struct input *input)
{
    return input->limit;
}

void input_close(struct input *input)
{
    if (!input)
        return;
    if (input->has_stream)
        inflateEnd(&input->stream);
    if (input->close_fd)
        close(input->fd);
    free(input->packed);
    free(input->window);
    free(input);
}

static struct input *input_new(int fd, uint64_t max_bytes)
{
    struct input *input = calloc(1, sizeof(*input));
    if (!input)
        return NULL;
    input->fd = fd;
    input->limit = max_bytes ? max_bytes : input_free_memory();
    return input;
}

/* The first bytes are in the window already: from now on they are packed ones. */
static int input_begin_gzip(struct input *input, struct error *err)
{
    size_t shown = (size_t)(input->end - input->at);
    input->packed = malloc(INPUT_PACKED > shown ? INPUT_PACKED : shown);
    if (!input->packed || inflateInit2(&input->stream, 15 + 16) != Z_OK)
        return error_no_memory(err);
    input->has_stream = true;
    if (shown)
        memcpy(input->packed, input->at, shown);
    input->stream.next_in = input->packed;
    input->stream.avail_in = (uInt)shown;
    input->source_end = input->at_end;
    input->at_end = false;
    input->at = input->end = input->window;
    input->decoded = 0;
    input->is_gzip = input->in_member = true;
    input->seekable = false;
    input->size = 0;
    return STATUS_OK;
}

/* Look at the first two bytes: packed or not? */
static int input_begin(struct input *input, struct error *err)
{
    enum { LOOK = 64 };
    input->window = malloc(INPUT_WINDOW);
    if (!input->window)
        return error_no_memory(err);
    input->at = input->end = input->window;
    size_t shown = 0;
    while (shown < 2 && !input->at_end) {
        ssize_t got = input_source(input, input->window + shown, LOOK - shown);
        if (got < 0)
            return input_report(input, err);
        input->at_end = got == 0;
        shown += (size_t)got;
    }
    input->end = input->window + shown;
    input->decoded = shown;
    if (shown >= 2 && input->at[0] == 0x1f && input->at[1] == 0x8b)
        return input_begin_gzip(input, err);
    if (input->fd < 0) { /* plain memory: no copy of it */
        free(input->window);
        input->window = NULL;
        input->at = input->memory;
        input->end = input->memory + input->memory_length;
        input->decoded = input->memory_length;
        input->at_end = true;
    }
    if (input->decoded > input->limit) {
        input_over_limit(input);
        return input_report(input, err);
    }
    return STATUS_OK;
}

int input_from_memory(const void *bytes, size_t length, uint64_t max_bytes, struct input **result, struct error *err)
{
    *result = NULL;
    struct input *input = input_new(-1, max_bytes);
    if (!input)
        return error_no_memory(err);
    input->memory = bytes;
    input->memory_length = length;
    input->size = length;
    input->seekable = true;
    int status = input_begin(input, err);
    if (status)
        input_close(input);
    else
        *result = input;
    return status;
}

static int input_open_failed(int code, struct error *err)
{
    if (code == ENOENT)
        return error_set(err, STATUS_INPUT, "no such file");
    if (code == EACCES || code == EPERM)
        return error_set(err, STATUS_INPUT, "not readable: permission denied");
    return error_set(err, STATUS_INPUT, "cannot be opened: %s", strerror(code));
}

int input_open(const char *path, uint64_t max_bytes, struct input **result, struct error *err)
{
    *result = NULL;
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return input_open_failed(errno, err);
    struct stat about;
    int status = STATUS_OK;
    struct input *input = NULL;
    if (fstat(fd, &about))
        status = error_set(err, STATUS_INPUT, "cannot be read: %s", strerror(errno));
    else if (S_ISDIR(about.st_mode))
        status = error_set(err, STATUS_INPUT, "is a folder, not a snapshot; name a file in it");
    else if (!(input = input_new(fd, max_bytes)))
        status = error_no_memory(err);
    if (status) {
        if (!is_stdin)
            close(fd);
        return status;
    }
    input->close_fd = !is_stdin;
    if (S_ISREG(about.st_mode) && lseek(fd, 0, SEEK_CUR) == 0) {
        input->seekable = true;
        input->size = (uint64_t)about.st_size;
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    status = input_begin(input, err);
    if (status)
        input_close(input);
    else
        *result = input;
    return status;
}
