/*
 * Errors as data: a status for the caller's branch, a sentence for the person.
 *
 * Every fallible function returns 0 or a negative STATUS_ value and, if the
 * caller passed a struct error, fills it: what is wrong, where (a byte offset
 * in the input, if one is known) and what to do.  The caller owns the struct;
 * nothing is allocated.  Nothing here prints.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stdint.h>

enum status {
    STATUS_OK = 0,
    STATUS_USAGE = -2,       /* the caller asked for something that makes no sense */
    STATUS_INPUT = -3,       /* an input is missing, unreadable or damaged */
    STATUS_OUTPUT = -4,      /* an output could not be written */
    STATUS_NO_MEMORY = -5,   /* memory or the input limit ran out */
    STATUS_UNSUPPORTED = -6, /* a newer format, a version or machine we do not know */
    STATUS_NOT_FOUND = -7,   /* what was asked for is not there (a moment, a key, a driver) */
};

struct error {
    int status;
    bool has_offset;
    uint64_t offset; /* in the decoded input, valid if has_offset */
    char message[480];
};

/* Both record the error (err may be NULL) and return the status, so that `return error_set(...)` reads well. */
int error_set(struct error *err, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
int error_at(struct error *err, int status, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "no memory", the one message that is needed everywhere. */
int error_no_memory(struct error *err);

/* Put a context before the message: "reading X: " + what was there. */
void error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
