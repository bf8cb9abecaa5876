/* Errors as data; uses only the C library. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void error_fill(struct error *err, int status, const char *format, va_list arguments)
{
    err->status = status;
    err->has_offset = false;
    err->offset = 0;
    vsnprintf(err->message, sizeof(err->message), format, arguments);
}

int error_set(struct error *err, int status, const char *format, ...)
{
    if (err) {
        va_list arguments;
        va_start(arguments, format);
        error_fill(err, status, format, arguments);
        va_end(arguments);
    }
    return status;
}

int error_at(struct error *err, int status, uint64_t offset, const char *format, ...)
{
    if (err) {
        va_list arguments;
        va_start(arguments, format);
        error_fill(err, status, format, arguments);
        va_end(arguments);
        err->has_offset = true;
        err->offset = offset;
    }
    return status;
}

int error_no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "out of memory; close other programs or work on fewer entries");
}

void error_prefix(struct error *err, const char *format, ...)
{
    if (!err)
        return;
    char before[sizeof(err->message)];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(before, sizeof(before), format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    size_t used = (size_t)length < sizeof(before) ? (size_t)length : sizeof(before) - 1;
    size_t room = sizeof(err->message) - 1 - used;
    size_t keep = strlen(err->message);
    if (keep > room)
        keep = room;
    memmove(err->message + used, err->message, keep);
    memcpy(err->message, before, used);
    err->message[used + keep] = '\0';
}
