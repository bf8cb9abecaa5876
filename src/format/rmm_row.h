/*
 * The lines of an RMM log (RAPIDS memory manager, logging_resource_adaptor): a header that names the columns, and rows.
 *
 *     Thread,Time,Action,Pointer,Size,Stream
 *     1979932,14:21:19.998533,allocate,0x30a000000,256,0x2
 *
 * What versions of RMM disagree about is read either way: Thread, Time and Stream may be missing, columns stand in any
 * order and may be in quotes, microseconds follow a point or a colon, pointers and streams have 0x or not, and a null
 * pointer is 0x0, 0 or (nil).  Uses src/base/error.
 */
#ifndef FORMAT_RMM_ROW_H
#define FORMAT_RMM_ROW_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RMM_LINE = 4096 }; /* bytes of the longest line */

enum rmm_column { RMM_THREAD, RMM_TIME, RMM_ACTION, RMM_POINTER, RMM_SIZE, RMM_STREAM, RMM_COLUMNS };

struct rmm_header {
    int places[RMM_COLUMNS]; /* which field of a row; -1: the log does not have it */
    int count;               /* fields of a row */
};

enum rmm_action { RMM_ALLOCATE, RMM_FREE, RMM_FAILURE };

struct rmm_row {
    enum rmm_action action;
    uint64_t thread, pointer, size, stream;
    int64_t time;    /* microseconds since midnight, or since the epoch if has_date */
    bool has_date;
};

/* Is this line a header?  It must name Action, Pointer and Size, and no column of ours twice. */
bool rmm_read_header(const char *line, size_t length, struct rmm_header *header);

/* The fields of a row; an error says what is wrong and begins with the number of the line. */
int rmm_read_row(const struct rmm_header *header, const char *line, size_t length, uint64_t number, struct rmm_row *row,
                 struct error *err);

/* Does the line stop before the last column that the header names? */
bool rmm_is_cut(const struct rmm_header *header, const char *line, size_t length);

#endif
