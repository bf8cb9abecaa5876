/*
 * Writing pickle opcodes, protocol 4 with frames, as Python's own pickler spells plain data (memory_viz reads no newer
 * protocol).  The caller decides what is memoized; memo numbers count from 0 in the order of pickle_memoize().
 * Output is streamed in frames of 64 KiB.  Failure is the output's, and sticky.
 */
#ifndef FORMAT_PICKLE_WRITE_H
#define FORMAT_PICKLE_WRITE_H

#include "base/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PICKLE_APPENDS = 'e', PICKLE_SETITEMS = 'u', PICKLE_ADDITEMS = 0x90 };

#define PICKLE_BATCH 1000 /* items between a mark and its APPENDS or SETITEMS, as Python's pickler does */

struct pickle_writer {
    struct output *output;
    uint32_t memo;         /* the next number */
    size_t used;
    unsigned char frame[64 * 1024 + 16];
};

void pickle_begin(struct pickle_writer *writer, struct output *output);
void pickle_end(struct pickle_writer *writer); /* STOP, and everything is handed to the output */

void pickle_op(struct pickle_writer *writer, unsigned char opcode);
void pickle_write_int(struct pickle_writer *writer, int64_t number);
void pickle_write_unsigned(struct pickle_writer *writer, uint64_t number);
void pickle_write_long(struct pickle_writer *writer, const unsigned char *little_endian, size_t length);
void pickle_write_float(struct pickle_writer *writer, double number);
void pickle_write_bool(struct pickle_writer *writer, bool truth);
void pickle_write_string(struct pickle_writer *writer, const char *bytes, size_t length);
void pickle_write_bytes(struct pickle_writer *writer, const unsigned char *bytes, size_t length);
void pickle_write_bytearray(struct pickle_writer *writer, const unsigned char *bytes, size_t length);
void pickle_write_get(struct pickle_writer *writer, uint32_t number);
uint32_t pickle_memoize(struct pickle_writer *writer); /* the number that the object just written has now */

/* A container's items one by one: call pickle_item() before each with its position and how many there are in all, and
 * pickle_items_end() after the last. */
void pickle_item(struct pickle_writer *writer, uint64_t position, uint64_t count, unsigned char batch_opcode);
void pickle_items_end(struct pickle_writer *writer, uint64_t count, unsigned char batch_opcode);

#endif
