/* What is at an address.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/find_address.h"

#include "analyze/makers.h"

#include <stdlib.h>
#include <string.h>

static bool holds(uint64_t start, uint64_t size, uint64_t address)
{
    return address >= start && address - start < size;
}

/* The segment and the block of a process; a living block before a hole. */
static void find_place(const struct state *state, uint64_t address, struct find_answer *answer)
{
    for (size_t s = 0; s < state->segment_count && answer->kind != FIND_LIVE; s++) {
        const struct segment *segment = &state->segments[s];
        if (segment->process != answer->process || !holds(segment->address, segment->total_size, address))
            continue;
        answer->kind = FIND_HOLE;
        answer->segment = s;
        for (uint32_t b = 0; b < segment->block_count; b++) {
            const struct block *block = &state->blocks[segment->first_block + b];
            if (!holds(block->address, block->size, address))
                continue;
            answer->block = segment->first_block + b;
            answer->kind = block_is_living(block) ? FIND_LIVE : FIND_HOLE;
        }
    }
}

/* Blocks are larger than what was asked for: what an entry's block may cover beyond its size. */
static bool entry_covers(const struct snapshot *snapshot, size_t i, uint16_t process, uint64_t address)
{
    const struct entries *entries = &snapshot->entries;
    uint64_t size = entries->size[i];
    if ((entries->process ? entries->process[i] : 0) != process)
        return false;
    if (entries->action[i] <= ACTION_FREE_COMPLETED && size <= UINT64_MAX - 511)
        size = size ? (size + 511) / 512 * 512 : 512;
    return holds(entries->address[i], size, address);
}

/* Who allocated the block that lives, or what lived there last and what freed that. */
static void find_past(const struct snapshot *snapshot, uint64_t moment, const struct block *live, uint64_t address,
                      struct find_answer *answer)
{
    const struct entries *entries = &snapshot->entries;
    for (size_t i = moment; i-- > 0 && answer->allocated == FIND_NO_ENTRY;) {
        bool ends = entry_ends(snapshot, i);
        if (!ends && !entry_makes(snapshot, i))
            continue;
        uint16_t process = entries->process ? entries->process[i] : 0;
        if (live ? process != answer->process || entries->address[i] != live->address
                 : !entry_covers(snapshot, i, answer->process, address))
            continue;
        if (!ends)
            answer->allocated = i;
        else if (!live && answer->freed == FIND_NO_ENTRY)
            answer->freed = i;
        else if (live && entries->action[i] != ACTION_FREE_REQUESTED)
            return; /* it lives although it was freed: no entry tells who made it */
    }
}

static void find_future(const struct snapshot *snapshot, uint64_t moment, uint64_t address, struct find_answer *answer)
{
    for (size_t i = moment; i < snapshot->entries.count; i++)
        if (entry_makes(snapshot, i) && entry_covers(snapshot, i, answer->process, address)) {
            answer->next = i;
            return;
        }
}

int find_address(const struct snapshot *snapshot, const struct state *state, uint64_t address, struct find_answers *answers,
                 struct error *err)
{
    uint64_t moment = state == &snapshot->end ? snapshot->entries.count : state->moment;
    *answers = (struct find_answers){.items = calloc(snapshot->process_count + 1, sizeof(*answers->items))};
    if (!answers->items)
        return error_no_memory(err);
    for (size_t p = 0; p < snapshot->process_count; p++) {
        struct find_answer answer = {.kind = FIND_NEVER, .process = (uint16_t)p, .segment = SIZE_MAX, .block = SIZE_MAX,
                                     .allocated = FIND_NO_ENTRY, .freed = FIND_NO_ENTRY, .next = FIND_NO_ENTRY};
        find_place(state, address, &answer);
        find_past(snapshot, moment, answer.kind == FIND_LIVE ? &state->blocks[answer.block] : NULL, address, &answer);
        if (answer.kind != FIND_LIVE)
            find_future(snapshot, moment, address, &answer);
        bool is_told = answer.allocated != FIND_NO_ENTRY || answer.freed != FIND_NO_ENTRY;
        if (answer.kind == FIND_NEVER && is_told)
            answer.kind = FIND_FREED;
        if (answer.kind != FIND_NEVER || answer.next != FIND_NO_ENTRY || p + 1 == snapshot->process_count)
            if (answer.kind != FIND_NEVER || answer.next != FIND_NO_ENTRY || !answers->count)
                answers->items[answers->count++] = answer;
    }
    return STATUS_OK;
}

void find_answers_free(struct find_answers *answers)
{
    free(answers->items);
    *answers = (struct find_answers){0};
}
