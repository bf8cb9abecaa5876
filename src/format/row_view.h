/*
 * What a row of a snapshot says under a key, for writers that go key by key: the column's value, an odd one, or
 * nothing.  Costs nothing for rows of our own; for rows of files a look at their shape.
 */
#ifndef FORMAT_ROW_VIEW_H
#define FORMAT_ROW_VIEW_H

#include "snapshot/snapshot.h"

enum row_says {
    ROW_ABSENT, /* the source had no such key */
    ROW_COLUMN, /* the column's value holds */
    ROW_ODD,    /* *odd holds instead */
};

enum row_says row_view(const struct snapshot *snapshot, enum row_kind kind, uint64_t row, uint16_t shape,
                       enum field field, value *odd);

#endif
