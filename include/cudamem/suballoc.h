/*
 * cudamem/suballoc.h: for programs that pool for themselves: say which pieces of a block are in use.
 *
 * A program that takes one block with cudamem_alloc() and hands out pieces of it shows up as that one block.  With these
 * calls its pieces are shown in its stead, each with its size and stack: in snapshots of this library as blocks of the
 * segment (what lies between them is inactive), in its history as entries of their own.  From the first piece on the block
 * counts as freed there; with cudamem_free() of it the pieces that are left end, too.  Statistics go on counting the block.
 * Pieces lie in one block and do not overlap; one that overlaps another is left out of snapshots.  What the program did with
 * its pool is no allocator's doing: a replay of such a history is no exact one.
 *
 * Under `cudamem record` the recorder hears of them, too, in whatever memory of the driver they lie.  Thread safe; not from a
 * trace tracker.  Errors as in cudamem/allocator.h.
 */
#ifndef CUDAMEM_SUBALLOC_H
#define CUDAMEM_SUBALLOC_H

#include <cudamem/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* [pointer, pointer + size) is in use from now on, for work on `stream` of this device (-1: the current one).
 * CUDAMEM_ERROR_INVALID: it does not lie in one block of cudamem_alloc(), or a piece begins there already. */
int cudamem_suballoc(const void *pointer, size_t size, int device, void *stream, cudamem_error *error);

/* The piece that begins there is not in use any more; NULL is fine.  CUDAMEM_ERROR_INVALID: there is none. */
int cudamem_subfree(const void *pointer, cudamem_error *error);

#ifdef __cplusplus
}
#endif
#endif
