/*
 * Reading a stranger's file.
 *
 * An input is a stream of *decoded* bytes: of a file or of standard input ("-"), unpacked if it is gzip.  What it is
 * gets decided by content.  Nothing is mapped, so a file that shrinks meanwhile is a short read and no crash.  A limit
 * on decoded bytes ends compression bombs.  Not thread safe.
 */
#ifndef BASE_INPUT_H
#define BASE_INPUT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

/* Open path ("-": standard input).  max_bytes bounds the decoded bytes; 0: what the machine has free.  On failure
 * *result is NULL and err says what is wrong (missing, a directory, not readable, ...). */
int input_open(const char *path, uint64_t max_bytes, struct input **result, struct error *err);

/* Over bytes in memory that outlive the input (tests, fuzzers); gzip is unpacked here too. */
int input_from_memory(const void *bytes, size_t length, uint64_t max_bytes, struct input **result, struct error *err);

void input_close(struct input *input);

/* The next bytes without consuming them: at least `want` of them unless the end comes first; *available says how many
 * there are.  want is at most 64 KiB.  The pointer is valid until the next call. */
int input_peek(struct input *input, size_t want, const unsigned char **bytes, size_t *available, struct error *err);

/* Consume count bytes that a peek showed. */
void input_skip(struct input *input, size_t count);

/* Exactly length bytes into buffer, or STATUS_INPUT "ends in the middle of ..." with the offset. */
int input_read(struct input *input, void *buffer, size_t length, const char *what, struct error *err);

/* Everything that is left, into a buffer that the caller frees. */
int input_read_all(struct input *input, unsigned char **bytes, size_t *length, struct error *err);

/* A reader that has found the end of its own data calls this: gzip's checksum is compared then (the rest is unpacked and
 * dropped).  Plain data may be followed by anything; nothing is read. */
int input_check_end(struct input *input, struct error *err);

/* Random access for formats with an index: length bytes at offset, if input_is_seekable() (a plain regular file or
 * memory, not gzip).  Does not move the stream. */
bool input_is_seekable(const struct input *input);
int input_read_at(struct input *input, uint64_t offset, void *buffer, size_t length, struct error *err);
uint64_t input_size(const struct input *input); /* bytes of a seekable input */

uint64_t input_offset(const struct input *input); /* decoded bytes consumed so far */
bool input_is_gzip(const struct input *input);
uint64_t input_limit(const struct input *input);  /* max_bytes in force */

#endif
