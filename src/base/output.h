/*
 * Output files appear whole or not at all: bytes go to a temporary file beside the target (O_EXCL, mode 0666 less the
 * umask), which replaces it at output_commit().  "-" and NULL are standard output.  A device or a pipe given by name
 * is written in place.  Failure is sticky; commit reports it.
 */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output;

int output_open(const char *path, struct output **result, struct error *err);

/* Into memory: output_commit() hands the bytes to the caller. */
int output_to_memory(unsigned char **bytes, size_t *length, struct output **result, struct error *err);

void output_write(struct output *output, const void *bytes, size_t length);
void output_text(struct output *output, const char *string);
void output_printf(struct output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
void output_char(struct output *output, char c);

uint64_t output_offset(const struct output *output); /* bytes written so far */
bool output_is_terminal(const struct output *output);

/* True once a write failed (disk full, closed pipe): the producer may stop early. */
bool output_failed(const struct output *output);

/* True if the failure was a reader that went away (EPIPE): end quietly. */
bool output_pipe_closed(const struct output *output);

/* Finish and free.  0, or STATUS_OUTPUT with what could not be written; then nothing is left behind. */
int output_commit(struct output *output, struct error *err);

/* Throw away what was written, and free.  NULL is fine. */
void output_abandon(struct output *output);

#endif
