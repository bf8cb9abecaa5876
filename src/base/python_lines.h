/*
 * Which line of a file an instruction of Python's byte code belongs to, by the table that its code object holds.  Pure
 * functions over bytes that may be anything: nothing is read beyond the table.
 */
#ifndef BASE_PYTHON_LINES_H
#define BASE_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#define PYTHON_LINE_NONE (-1) /* the interpreter gives this instruction no line */

/* version: as PY_VERSION_HEX; it tells which of the three kinds of table it is.  instruction: byte offset in the code; a
 * negative one (not begun) is on the first line.  As PyFrame_GetLineNumber answers. */
int64_t python_line(uint32_t version, const unsigned char *table, size_t size, int32_t first_line, int32_t instruction);

#endif
