/*
 * Pieces of blocks that the program hands out itself (include/cudamem/suballoc.h).  Uses src/base and src/alloc.
 *
 * A block with pieces is a carve; its pieces are linked.  It is one until its free: the history asks here about every
 * event while there is any.
 */
#include "api/suballoc.h"

#include "api/report.h"
#include "base/array.h"

#include <cudamem/suballoc.h>
#include <stdlib.h>

struct piece {
    uint64_t address, size, context;
    int64_t stream;
    uint32_t carve, next, previous; /* 0: none */
};

struct carve {
    uint64_t address, size;
    struct pool_id pool;
    uint32_t first; /* piece */
    bool is_freed;  /* its free was asked for and is not complete */
};

struct pieces { /* of one device; [0] of both lists is nobody's */
    struct piece *pieces;
    struct carve *carves;
    size_t piece_count, piece_capacity, carve_count, carve_capacity;
    uint32_t spare_piece, spare_carve; /* linked by next, by first */
    uint32_t recent;                   /* carve of the last piece */
    struct table by_piece, by_carve;   /* address -> its number */
};
static struct pieces devices[LIBRARY_DEVICES];

/* --- records ----------------------------------------------------------------------------------------------------------- */

/* 0: no memory. */
static uint32_t new_piece(struct pieces *of)
{
    uint32_t number = of->spare_piece;
    if (number) {
        of->spare_piece = of->pieces[number].next;
        return number;
    }
    size_t need = (of->piece_count ? of->piece_count : 1) + 1;
    if (need >= UINT32_MAX || array_reserve(&of->pieces, &of->piece_capacity, need, sizeof(*of->pieces)))
        return 0;
    of->piece_count = need;
    return (uint32_t)need - 1;
}

static uint32_t new_carve(struct pieces *of)
{
    uint32_t number = of->spare_carve;
    if (number) {
        of->spare_carve = of->carves[number].first;
        return number;
    }
    size_t need = (of->carve_count ? of->carve_count : 1) + 1;
    if (need >= UINT32_MAX || array_reserve(&of->carves, &of->carve_capacity, need, sizeof(*of->carves)))
        return 0;
    of->carve_count = need;
    return (uint32_t)need - 1;
}

static void give_carve(struct pieces *of, uint32_t number)
{
    table_remove(&of->by_carve, of->carves[number].address);
    of->recent = of->recent == number ? 0 : of->recent;
    of->carves[number].first = of->spare_carve;
    of->spare_carve = number;
}

static void remove_piece(struct pieces *of, uint32_t number)
{
    struct piece *piece = &of->pieces[number];
    table_remove(&of->by_piece, piece->address);
    if (piece->previous)
        of->pieces[piece->previous].next = piece->next;
    else
        of->carves[piece->carve].first = piece->next;
    if (piece->next)
        of->pieces[piece->next].previous = piece->previous;
    piece->next = of->spare_piece;
    of->spare_piece = number;
}

/* --- entries ------------------------------------------------------------------------------------------------------------ */

static void tell(struct library_device *device, enum allocator_action action, uint64_t address, uint64_t size,
                 int64_t stream, struct pool_id pool, uint64_t context)
{
    const struct allocator_event event = {action, address, size, stream, pool, context};
    history_keep(device, &event);
}

static void tell_free(struct library_device *device, uint64_t address, uint64_t size, int64_t stream, struct pool_id pool,
                      uint64_t context)
{
    tell(device, ALLOCATOR_FREE_REQUESTED, address, size, stream, pool, context);
    tell(device, ALLOCATOR_FREE_COMPLETED, address, size, stream, pool, context);
}

static void end_piece(struct library_device *device, uint32_t number, uint64_t context)
{
    struct pieces *of = &devices[device->ordinal];
    const struct piece piece = of->pieces[number];
    tell_free(device, piece.address, piece.size, piece.stream, of->carves[piece.carve].pool,
              context ? context : piece.context);
    remove_piece(of, number);
}

bool suballoc_event(struct library_device *device, const struct allocator_event *event)
{
    struct pieces *of = &devices[device->ordinal];
    bool is_request = event->action == ALLOCATOR_FREE_REQUESTED;
    if (!of->by_carve.count || (!is_request && event->action != ALLOCATOR_FREE_COMPLETED))
        return false;
    uint32_t number = table_get(&of->by_carve, event->address, 0);
    if (!number || of->carves[number].is_freed == is_request)
        return false;
    while (is_request && of->carves[number].first)
        end_piece(device, of->carves[number].first, library_wants(LIBRARY_CAPTURE_FREE) ? event->context : 0);
    of->carves[number].is_freed = true;
    if (!is_request)
        give_carve(of, number);
    return true;
}

/* --- pieces ------------------------------------------------------------------------------------------------------------- */

/* The block's record, made of it with its first piece; 0: no memory. */
static uint32_t carve_of(struct library_device *device, const struct allocator_block *block, int64_t stream,
                         uint64_t context)
{
    struct pieces *of = &devices[device->ordinal];
    struct allocator_segment segment = {.pool = {0, 0}};
    uint32_t number = table_get(&of->by_carve, block->address, 0);
    if (number)
        return number;
    number = new_carve(of);
    if (!number)
        return 0;
    allocator_segment_of(device->allocator, block->address, &segment);
    of->carves[number] = (struct carve){block->address, block->size, segment.pool, 0, false};
    if (table_set(&of->by_carve, block->address, number)) {
        give_carve(of, number);
        return 0;
    }
    tell_free(device, block->address, block->requested, stream, segment.pool, context ? context : block->context);
    return number;
}

static int add_piece(struct library_device *device, const struct allocator_block *block, const struct piece *wanted,
                     struct error *err)
{
    struct pieces *of = &devices[device->ordinal];
    if (table_has(&of->by_piece, wanted->address))
        return error_set(err, CUDAMEM_ERROR_INVALID, "a piece begins at 0x%llx already", (unsigned long long)wanted->address);
    uint32_t carve = carve_of(device, block, wanted->stream, wanted->context), number = carve ? new_piece(of) : 0;
    if (!number)
        return error_no_memory(err);
    of->pieces[number] = *wanted;
    of->pieces[number].carve = carve;
    if (table_set(&of->by_piece, wanted->address, number)) {
        of->pieces[number].next = of->spare_piece;
        of->spare_piece = number;
        return error_no_memory(err);
    }
    of->pieces[number].next = of->carves[carve].first;
    of->pieces[number].previous = 0;
    if (of->carves[carve].first)
        of->pieces[of->carves[carve].first].previous = number;
    of->carves[carve].first = number;
    of->recent = carve;
    tell(device, ALLOCATOR_ALLOC, wanted->address, wanted->size, wanted->stream, of->carves[carve].pool, wanted->context);
    return CUDAMEM_OK;
}

/* Does the device have a block that holds it all?  That of the last piece is looked at first: others must be searched for. */
static bool find_block(const struct library_device *device, const struct piece *piece, struct allocator_block *block)
{
    const struct pieces *of = &devices[device->ordinal];
    const struct carve *recent = of->recent && !of->carves[of->recent].is_freed ? &of->carves[of->recent] : NULL;
    bool is_recent = recent && piece->address - recent->address < recent->size;
    return allocator_find(device->allocator, is_recent ? recent->address : piece->address, block) && block->allocated &&
           piece->size <= block->size - (piece->address - block->address);
}

static int suballoc(const struct piece *piece, int ordinal, struct error *err)
{
    struct library_device *device = NULL;
    struct allocator_block block;
    bool found = false;
    int status = library_device_if_used(ordinal, &device, err);
    if (!status && device)
        status = library_enter(device, err);
    if (status)
        return status;
    if (device) {
        found = find_block(device, piece, &block);
        status = found ? add_piece(device, &block, piece, err) : CUDAMEM_OK;
        library_leave(device);
    }
    return found ? status : error_set(err, CUDAMEM_ERROR_INVALID, "%llu bytes at 0x%llx do not lie in a block of cudamem_alloc()",
                                      (unsigned long long)piece->size, (unsigned long long)piece->address);
}

EXPORT int cudamem_suballoc(const void *pointer, size_t size, int device, void *stream, cudamem_error *error)
{
    struct error err = {0};
    struct piece piece = {.address = (uint64_t)(uintptr_t)pointer, .size = size, .stream = (int64_t)(intptr_t)stream};
    if (!pointer || !size)
        return api_report(error, &err, error_set(&err, CUDAMEM_ERROR_USAGE, "a piece needs a place and a size"));
    int status = library_check_outside(&err);
    if (!status)
        status = library_native_only("pieces of blocks", &err);
    if (!status)
        status = history_watch(&err);
    if (!status) {
        piece.context = library_context_begin(LIBRARY_CAPTURE_ALLOC);
        status = suballoc(&piece, device, &err);
        library_context_end(piece.context);
    }
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* On whichever device it begins. */
static int subfree(uint64_t address, uint64_t context, struct error *err)
{
    for (struct library_device *d = library_next_device(0); d; d = library_next_device(d->ordinal + 1)) {
        int status = library_enter(d, err);
        if (status)
            return status;
        uint32_t number = table_get(&devices[d->ordinal].by_piece, address, 0);
        if (number)
            end_piece(d, number, context);
        library_leave(d);
        if (number)
            return CUDAMEM_OK;
    }
    return error_set(err, CUDAMEM_ERROR_INVALID, "no piece of cudamem_suballoc() begins at 0x%llx", (unsigned long long)address);
}

EXPORT int cudamem_subfree(const void *pointer, cudamem_error *error)
{
    struct error err = {0};
    int status = library_check_outside(&err);
    if (!status && pointer) {
        uint64_t context = library_context_begin(LIBRARY_CAPTURE_FREE);
        status = subfree((uint64_t)(uintptr_t)pointer, context, &err);
        library_context_end(context);
    }
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}

/* --- snapshots ---------------------------------------------------------------------------------------------------------- */

static int compare_pieces(const void *a, const void *b)
{
    uint64_t x = ((const struct piece *)a)->address, y = ((const struct piece *)b)->address;
    return x < y ? -1 : x > y;
}

/* In order; NULL: no memory. */
static struct piece *sorted_pieces(const struct pieces *of, const struct carve *carve, size_t *count)
{
    *count = 0;
    for (uint32_t i = carve->first; i; i = of->pieces[i].next)
        ++*count;
    struct piece *sorted = malloc(*count * sizeof(*sorted) + 1);
    size_t at = 0;
    for (uint32_t i = carve->first; sorted && i; i = of->pieces[i].next)
        sorted[at++] = of->pieces[i];
    if (sorted)
        qsort(sorted, *count, sizeof(*sorted), compare_pieces);
    return sorted;
}

static int visit_tiles(const struct allocator_block *block, const struct piece *pieces, size_t count,
                       int (*visit)(void *self, const struct allocator_block *piece), void *self)
{
    uint64_t at = block->address, end = block->address + block->size;
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        const struct piece *piece = &pieces[i];
        const struct allocator_block gap = {.address = at, .size = piece->address - at},
                                     used = {piece->address, piece->size, piece->size, piece->context, true, true};
        if (piece->address < at)
            continue;
        if (gap.size)
            status = visit(self, &gap);
        if (!status)
            status = visit(self, &used);
        at = piece->address + piece->size;
    }
    const struct allocator_block rest = {.address = at, .size = end - at};
    return status || !rest.size ? status : visit(self, &rest);
}

int suballoc_visit(struct library_device *device, const struct allocator_block *block,
                   int (*visit)(void *self, const struct allocator_block *piece), void *self)
{
    const struct pieces *of = &devices[device->ordinal];
    uint32_t number = block->allocated ? table_get(&of->by_carve, block->address, 0) : 0;
    size_t count;
    if (!number)
        return visit(self, block);
    struct piece *pieces = sorted_pieces(of, &of->carves[number], &count);
    if (!pieces)
        return STATUS_NO_MEMORY;
    int status = visit_tiles(block, pieces, count, visit, self);
    free(pieces);
    return status;
}
