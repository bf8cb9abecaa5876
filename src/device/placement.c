/*
 * The placement rule of placement.h.  May use: the C library only.
 *
 * Chunks are kept in the order they were made; each has its pieces (live
 * segments and holes) in address order, so that merging is a look at the
 * neighbours.  A seeded chunk has a third kind of piece, what was there
 * before, which never goes away.
 */
#include "device/placement.h"

#include <stdlib.h>
#include <string.h>

enum piece_kind { PIECE_HOLE, PIECE_SEGMENT, PIECE_FOREIGN };

struct piece {
    uint64_t start, end;
    enum piece_kind kind;
};

struct chunk {
    uint64_t start, end;
    struct piece *pieces;
    size_t count, room;
    bool stays; /* never given back: others have a part in it that is not shown */
};

struct range {
    uint64_t start, end;
};

struct placement {
    struct chunk *chunks; /* oldest first */
    size_t count, room;
    struct range *gaps; /* by address */
    size_t gap_count, gap_room;
    uint64_t low; /* upper end of the open space */
};

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return value > UINT64_MAX - (step - 1) ? 0 : (value + step - 1) / step * step;
}

uint64_t placement_round(uint64_t bytes)
{
    return round_up(bytes, PLACEMENT_PAGE);
}

static bool grow(void **array, size_t *room, size_t need, size_t size)
{
    if (need <= *room)
        return true;
    size_t wanted = *room ? *room * 2 : 8;
    void *larger = realloc(*array, wanted * size);
    if (!larger)
        return false;
    *array = larger;
    *room = wanted;
    return true;
}

struct placement *placement_new(uint64_t top)
{
    struct placement *p = calloc(1, sizeof *p);
    if (p)
        p->low = top;
    return p;
}

void placement_free(struct placement *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++)
        free(p->chunks[i].pieces);
    free(p->chunks);
    free(p->gaps);
    free(p);
}

void placement_open(struct placement *p, uint64_t top)
{
    p->low = top;
}

uint64_t placement_low(const struct placement *p)
{
    return p->low;
}

/* Pieces of a chunk. */

static bool piece_insert(struct chunk *c, size_t at, struct piece piece)
{
    if (!grow((void **)&c->pieces, &c->room, c->count + 1, sizeof *c->pieces))
        return false;
    memmove(c->pieces + at + 1, c->pieces + at, (c->count - at) * sizeof *c->pieces);
    c->pieces[at] = piece;
    c->count++;
    return true;
}

static void piece_remove(struct chunk *c, size_t at)
{
    c->count--;
    memmove(c->pieces + at, c->pieces + at + 1, (c->count - at) * sizeof *c->pieces);
}

/* Turn the part [start, end) of the hole at index `at` into a segment; the rest before and after stays hole. */
static bool hole_fill(struct chunk *c, size_t at, uint64_t start, uint64_t end)
{
    if (!grow((void **)&c->pieces, &c->room, c->count + 2, sizeof *c->pieces))
        return false;
    struct piece hole = c->pieces[at];
    c->pieces[at] = (struct piece){start, end, PIECE_SEGMENT};
    if (end < hole.end)
        piece_insert(c, at + 1, (struct piece){end, hole.end, PIECE_HOLE});
    if (hole.start < start)
        piece_insert(c, at, (struct piece){hole.start, start, PIECE_HOLE});
    return true;
}

static struct piece *smallest_hole(struct chunk *c, uint64_t bytes)
{
    struct piece *best = NULL;
    for (size_t i = 0; i < c->count; i++) {
        struct piece *piece = &c->pieces[i];
        if (piece->kind == PIECE_HOLE && piece->end - piece->start >= bytes &&
            (!best || piece->end - piece->start < best->end - best->start))
            best = piece;
    }
    return best;
}

/* Chunks and gaps. */

static struct chunk *chunk_add(struct placement *p, uint64_t start, uint64_t end)
{
    if (!grow((void **)&p->chunks, &p->room, p->count + 1, sizeof *p->chunks))
        return NULL;
    struct chunk *c = &p->chunks[p->count];
    *c = (struct chunk){.start = start, .end = end};
    if (!piece_insert(c, 0, (struct piece){start, end, PIECE_HOLE}))
        return NULL;
    p->count++;
    return c;
}

static void gap_remove(struct placement *p, size_t at)
{
    p->gap_count--;
    memmove(p->gaps + at, p->gaps + at + 1, (p->gap_count - at) * sizeof *p->gaps);
}

/* [start, end) belongs to nobody any more: join it with its neighbours, or with the open space. */
static void gap_add(struct placement *p, uint64_t start, uint64_t end)
{
    for (size_t i = p->gap_count; i-- > 0;) {
        if (p->gaps[i].end == start)
            start = p->gaps[i].start;
        else if (p->gaps[i].start == end)
            end = p->gaps[i].end;
        else
            continue;
        gap_remove(p, i);
    }
    if (start == p->low) {
        p->low = end;
        return;
    }
    if (!grow((void **)&p->gaps, &p->gap_room, p->gap_count + 1, sizeof *p->gaps))
        return; /* the range is not used again, nothing worse */
    size_t at = 0;
    while (at < p->gap_count && p->gaps[at].start < start)
        at++;
    memmove(p->gaps + at + 1, p->gaps + at, (p->gap_count - at) * sizeof *p->gaps);
    p->gaps[at] = (struct range){start, end};
    p->gap_count++;
}

/* Address space for a chunk: the top of the highest gap strictly larger, else below everything. */
static uint64_t space_get(struct placement *p, uint64_t bytes)
{
    for (size_t i = p->gap_count; i-- > 0;) {
        struct range *gap = &p->gaps[i];
        if (gap->end - gap->start > bytes) {
            gap->end -= bytes;
            return gap->end;
        }
    }
    if (p->low <= bytes)
        return 0;
    p->low -= bytes;
    return p->low;
}

uint64_t placement_get(struct placement *p, uint64_t bytes)
{
    uint64_t size = placement_round(bytes);
    if (!size)
        return 0;
    for (size_t i = p->count; i-- > 0;) {
        struct chunk *c = &p->chunks[i];
        struct piece *hole = smallest_hole(c, size);
        if (hole) {
            uint64_t start = hole->start;
            return hole_fill(c, (size_t)(hole - c->pieces), start, start + size) ? start : 0;
        }
    }
    uint64_t whole = round_up(size, PLACEMENT_CHUNK);
    uint64_t start = whole ? space_get(p, whole) : 0;
    if (!start)
        return 0;
    struct chunk *c = chunk_add(p, start, start + whole);
    if (!c) {
        gap_add(p, start, start + whole);
        return 0;
    }
    if (!hole_fill(c, 0, start, start + size))
        return 0; /* an empty chunk stays: a hole like any other */
    return start;
}

static bool find_segment(struct placement *p, uint64_t address, size_t *chunk, size_t *piece)
{
    for (size_t i = p->count; i-- > 0;) {
        struct chunk *c = &p->chunks[i];
        if (address < c->start || address >= c->end)
            continue;
        for (size_t k = 0; k < c->count; k++)
            if (c->pieces[k].start == address && c->pieces[k].kind == PIECE_SEGMENT) {
                *chunk = i;
                *piece = k;
                return true;
            }
    }
    return false;
}

bool placement_put(struct placement *p, uint64_t address)
{
    size_t i, k;
    if (!find_segment(p, address, &i, &k))
        return false;
    struct chunk *c = &p->chunks[i];
    c->pieces[k].kind = PIECE_HOLE;
    if (k + 1 < c->count && c->pieces[k + 1].kind == PIECE_HOLE) {
        c->pieces[k].end = c->pieces[k + 1].end;
        piece_remove(c, k + 1);
    }
    if (k > 0 && c->pieces[k - 1].kind == PIECE_HOLE) {
        c->pieces[k - 1].end = c->pieces[k].end;
        piece_remove(c, k);
    }
    if (c->stays || c->count > 1 || c->pieces[0].kind != PIECE_HOLE)
        return true;
    uint64_t start = c->start, end = c->end;
    free(c->pieces);
    p->count--;
    memmove(c, c + 1, (p->count - i) * sizeof *c);
    gap_add(p, start, end);
    return true;
}

bool placement_seed(struct placement *p, uint64_t address, uint64_t bytes, uint64_t hole_end)
{
    uint64_t size = placement_round(bytes), end = address + size;
    if (!size || end < address || hole_end < end)
        return false;
    uint64_t start = address / PLACEMENT_CHUNK * PLACEMENT_CHUNK, top = round_up(hole_end, PLACEMENT_CHUNK);
    struct chunk *c = chunk_add(p, start, top);
    if (!c || !hole_fill(c, 0, address, end))
        return false;
    for (size_t i = 0; i < c->count; i++) /* what the chunk holds besides is not ours, but for the hole after it */
        if (c->pieces[i].kind == PIECE_HOLE && c->pieces[i].start != end)
            c->pieces[i].kind = PIECE_FOREIGN;
    struct piece *last = &c->pieces[c->count - 1];
    if (last->kind == PIECE_HOLE && hole_end < last->end) {
        if (hole_end == last->start)
            last->kind = PIECE_FOREIGN;
        else if (!piece_insert(c, c->count, (struct piece){hole_end, last->end, PIECE_FOREIGN}))
            return false;
        else
            c->pieces[c->count - 2].end = hole_end;
    }
    if (start < p->low)
        p->low = start;
    return true;
}

/* Make the chunk that a recording shows and the rule did not expect, out of a gap or of the open space. */
static struct chunk *chunk_carve(struct placement *p, uint64_t address, uint64_t size)
{
    uint64_t start = address / PLACEMENT_CHUNK * PLACEMENT_CHUNK, end = round_up(address + size, PLACEMENT_CHUNK);
    for (size_t i = 0; i < p->count; i++) { /* no further than the neighbours */
        if (p->chunks[i].start < address + size && address < p->chunks[i].end)
            return NULL;
        if (p->chunks[i].end <= address && p->chunks[i].end > start)
            start = p->chunks[i].end;
        if (p->chunks[i].start >= address + size && p->chunks[i].start < end)
            end = p->chunks[i].start;
    }
    struct chunk *c = chunk_add(p, start, end);
    if (!c)
        return NULL;
    if (start < p->low) {
        uint64_t low = p->low;
        p->low = start;
        if (end < low)
            gap_add(p, end, low);
    }
    for (size_t i = p->gap_count; i-- > 0;) {
        struct range gap = p->gaps[i];
        if (gap.start >= end || gap.end <= start)
            continue;
        gap_remove(p, i);
        if (gap.start < start)
            gap_add(p, gap.start, start);
        if (gap.end > end)
            gap_add(p, end, gap.end);
    }
    return c;
}

bool placement_take(struct placement *p, uint64_t address, uint64_t bytes)
{
    uint64_t size = placement_round(bytes);
    if (!size || address > UINT64_MAX - size)
        return false;
    for (size_t i = p->count; i-- > 0;) {
        struct chunk *c = &p->chunks[i];
        for (size_t k = 0; address >= c->start && address < c->end && k < c->count; k++) {
            struct piece *piece = &c->pieces[k];
            if (address < piece->start || address >= piece->end)
                continue;
            if (piece->kind == PIECE_SEGMENT || address + size > piece->end)
                return false;
            return hole_fill(c, k, address, address + size);
        }
    }
    struct chunk *c = chunk_carve(p, address, size);
    return c && hole_fill(c, 0, address, address + size);
}

/* Is there anything that is known and not foreign in the range? */
static bool range_is_known(const struct placement *p, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct chunk *c = &p->chunks[i];
        for (size_t k = 0; c->start < end && start < c->end && k < c->count; k++)
            if (c->pieces[k].start < end && start < c->pieces[k].end && c->pieces[k].kind != PIECE_FOREIGN)
                return true;
    }
    for (size_t i = 0; i < p->gap_count; i++)
        if (p->gaps[i].start < end && start < p->gaps[i].end)
            return true;
    return start < p->low;
}

/* Chunks end where the range begins, or begin where it ends: what they lose is foreign.  False: the range is inside one. */
static bool chunk_trim(struct chunk *c, uint64_t start, uint64_t end)
{
    if (c->start >= end || c->end <= start)
        return true;
    if (c->start < start && c->end > end)
        return false;
    for (size_t k = c->count; k-- > 0;) {
        struct piece *piece = &c->pieces[k];
        if (piece->start >= start && piece->end <= end) {
            piece_remove(c, k);
            continue;
        }
        if (piece->start < start && piece->end > start)
            piece->end = start;
        else if (piece->end > end && piece->start < end)
            piece->start = end;
    }
    if (c->count) {
        c->start = c->pieces[0].start;
        c->end = c->pieces[c->count - 1].end;
    }
    return true;
}

/* The range is foreign and inside one chunk: the foreign piece that holds it opens there. */
static bool piece_open(struct chunk *c, uint64_t start, uint64_t end)
{
    for (size_t k = 0; k < c->count; k++) {
        if (c->pieces[k].start > start || c->pieces[k].end < end)
            continue;
        if (!hole_fill(c, k, start, end))
            return false;
        for (size_t i = 0; i < c->count; i++) /* hole_fill leaves holes around a segment; it is the other way here */
            if (c->pieces[i].start == start)
                c->pieces[i].kind = PIECE_HOLE;
            else if (c->pieces[i].end == start || c->pieces[i].start == end)
                c->pieces[i].kind = c->pieces[i].kind == PIECE_HOLE ? PIECE_FOREIGN : c->pieces[i].kind;
        return true;
    }
    return false;
}

bool placement_hole(struct placement *p, uint64_t start, uint64_t end)
{
    if (start >= end || range_is_known(p, start, end))
        return false;
    for (size_t i = 0; i < p->count; i++)
        if (p->chunks[i].start < start && p->chunks[i].end > end) {
            if (!piece_open(&p->chunks[i], start, end))
                return false;
            struct chunk opened = p->chunks[i]; /* the most recent one from now on */
            memmove(p->chunks + i, p->chunks + i + 1, (p->count - i - 1) * sizeof opened);
            p->chunks[p->count - 1] = opened;
            return true;
        }
    for (size_t i = p->count; i-- > 0;) {
        chunk_trim(&p->chunks[i], start, end);
        if (!p->chunks[i].count) {
            free(p->chunks[i].pieces);
            p->count--;
            memmove(p->chunks + i, p->chunks + i + 1, (p->count - i) * sizeof *p->chunks);
        }
    }
    struct chunk *c = chunk_add(p, start, end);
    if (c)
        c->stays = true;
    return c != NULL;
}

bool placement_age(struct placement *p, uint64_t address)
{
    for (size_t i = 0; i < p->count; i++) {
        struct chunk aged = p->chunks[i];
        if (address < aged.start || address >= aged.end)
            continue;
        memmove(p->chunks + 1, p->chunks, i * sizeof aged);
        p->chunks[0] = aged;
        return true;
    }
    return false;
}

bool placement_is_valid(const struct placement *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct chunk *c = &p->chunks[i];
        uint64_t at = c->start;
        for (size_t k = 0; k < c->count; k++) {
            if (c->pieces[k].start != at || c->pieces[k].end <= at)
                return false;
            if (k && c->pieces[k].kind == PIECE_HOLE && c->pieces[k - 1].kind == PIECE_HOLE)
                return false;
            at = c->pieces[k].end;
        }
        if (at != c->end || c->start < p->low)
            return false;
        for (size_t k = 0; k < i; k++)
            if (p->chunks[k].start < c->end && c->start < p->chunks[k].end)
                return false;
        for (size_t k = 0; k < p->gap_count; k++)
            if (p->gaps[k].start < c->end && c->start < p->gaps[k].end)
                return false;
    }
    for (size_t k = 0; k + 1 < p->gap_count; k++)
        if (p->gaps[k].end >= p->gaps[k + 1].start)
            return false;
    return p->gap_count == 0 || p->gaps[0].start > p->low;
}
