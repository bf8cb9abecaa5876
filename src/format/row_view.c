/* Shapes and odd values, asked per key.  Uses src/snapshot. */
#include "format/row_view.h"

enum row_says row_view(const struct snapshot *snapshot, enum row_kind kind, uint64_t row, uint16_t shape,
                       enum field field, value *odd)
{
    if (shape == SHAPE_OURS)
        return ROW_COLUMN;
    const struct shape *keys = &snapshot->shapes[shape];
    for (uint32_t slot = 0; slot < keys->count; slot++)
        if (keys->keys[slot] == field)
            return snapshot->odd_count && slot <= UINT16_MAX &&
                           snapshot_get_odd(snapshot, kind, row, (uint16_t)slot, odd)
                       ? ROW_ODD
                       : ROW_COLUMN;
    return ROW_ABSENT;
}
