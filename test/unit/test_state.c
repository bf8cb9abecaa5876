/* state_at() against a naive model that applies entries forward, at every moment, on random traces. */
#include "snapshot/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- a naive world: lists, searched from end to end ------------------------------------------------------------- */

#define WORLD_MAX 400

struct world_block {
    uint64_t address, size, requested;
    uint32_t context;
    uint8_t state;
    bool before;
};

struct world_segment {
    uint16_t process, device;
    uint64_t address, size;
    int64_t stream;
};

struct world {
    struct world_segment segments[WORLD_MAX];
    struct world_block blocks[WORLD_MAX];
    uint16_t block_process[WORLD_MAX], block_device[WORLD_MAX];
    size_t segment_count, block_count;
};

static size_t world_find_block(const struct world *w, uint16_t process, uint16_t device, uint64_t address)
{
    for (size_t i = 0; i < w->block_count; i++)
        if (w->block_process[i] == process && w->block_device[i] == device && w->blocks[i].address == address)
            return i;
    return SIZE_MAX;
}

static void world_remove_block(struct world *w, size_t i)
{
    w->block_count--;
    w->blocks[i] = w->blocks[w->block_count];
    w->block_process[i] = w->block_process[w->block_count];
    w->block_device[i] = w->block_device[w->block_count];
}

static void add_entry(struct snapshot *s, enum action action, uint16_t process, uint16_t device, uint64_t address,
                      uint64_t size, uint32_t context)
{
    struct entry entry;
    entry_init(&entry);
    entry.action = action;
    entry.process = process;
    entry.device = device;
    entry.address = address;
    entry.size = size;
    entry.context = context;
    entry.time = (int64_t)s->entries.count * 10;
    assert_int_equal(snapshot_add_entry(s, &entry), 0);
}

/* --- random programs -------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % bound;
}

#define PAGE (UINT64_C(1) << 24)

/* One step of a program on (process, device): entries, and the world as it is then. */
static void step(struct snapshot *s, struct world *w, uint16_t process, uint16_t device, uint32_t context)
{
    uint64_t what = random_below(10);
    if (what < 2 && w->segment_count < 40) { /* a segment at a free page */
        uint64_t address = PAGE * (1 + random_below(30));
        for (size_t i = 0; i < w->segment_count; i++)
            if (w->segments[i].process == process && w->segments[i].device == device && w->segments[i].address == address)
                return;
        uint64_t size = random_below(2) ? UINT64_C(2) << 20 : UINT64_C(12) << 20;
        w->segments[w->segment_count++] = (struct world_segment){process, device, address, size, 0};
        add_entry(s, ACTION_SEGMENT_ALLOC, process, device, address, size, context);
    } else if (what < 6 && w->segment_count) { /* a block at a free place, sizes that rounding gives back */
        const struct world_segment *segment = &w->segments[random_below(w->segment_count)];
        uint64_t requested = 1 + random_below(segment->size / 4), size = (requested + 511) / 512 * 512;
        uint64_t address = segment->address + 512 * random_below((segment->size - size) / 512 + 1);
        for (size_t i = 0; i < w->block_count; i++)
            if (w->block_process[i] == segment->process && w->block_device[i] == segment->device &&
                w->blocks[i].address < address + size && address < w->blocks[i].address + w->blocks[i].size)
                return;
        if (w->block_count == WORLD_MAX)
            return;
        w->block_process[w->block_count] = segment->process;
        w->block_device[w->block_count] = segment->device;
        w->blocks[w->block_count++] =
            (struct world_block){address, size, requested, context, BLOCK_ACTIVE_ALLOCATED, false};
        add_entry(s, ACTION_ALLOC, segment->process, segment->device, address, requested, context);
    } else if (what < 9 && w->block_count) { /* a free, at once or with a wait in between */
        size_t i = random_below(w->block_count);
        struct world_block *block = &w->blocks[i];
        uint16_t p = w->block_process[i], d = w->block_device[i];
        if (block->state == BLOCK_ACTIVE_ALLOCATED) {
            add_entry(s, ACTION_FREE_REQUESTED, p, d, block->address, block->requested, CONTEXT_NONE);
            block->state = BLOCK_ACTIVE_PENDING_FREE;
        } else {
            add_entry(s, ACTION_FREE_COMPLETED, p, d, block->address, block->requested, CONTEXT_NONE);
            world_remove_block(w, i);
        }
    } else if (w->segment_count) { /* an empty segment goes */
        size_t i = random_below(w->segment_count);
        struct world_segment segment = w->segments[i];
        for (size_t b = 0; b < w->block_count; b++)
            if (w->block_process[b] == segment.process && w->block_device[b] == segment.device &&
                w->blocks[b].address >= segment.address && w->blocks[b].address < segment.address + segment.size)
                return;
        add_entry(s, ACTION_SEGMENT_FREE, segment.process, segment.device, segment.address, segment.size, CONTEXT_NONE);
        w->segments[i] = w->segments[--w->segment_count];
    }
}

static int compare_world_segments(const void *a, const void *b)
{
    const struct world_segment *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Does the state say what the world is? */
static void assert_state_is_world(const struct snapshot *s, const struct state *state, struct world *w)
{
    struct error err;
    struct snapshot probe = *s;
    probe.end = *state;
    if (!snapshot_is_valid(&probe, &err))
        fail_msg("at %llu: %s", (unsigned long long)state->moment, err.message);
    qsort(w->segments, w->segment_count, sizeof(w->segments[0]), compare_world_segments);
    assert_int_equal(state->segment_count, w->segment_count);
    size_t living = 0;
    for (size_t i = 0; i < state->segment_count; i++) {
        const struct segment *segment = &state->segments[i];
        assert_int_equal(segment->address, w->segments[i].address);
        assert_int_equal(segment->total_size, w->segments[i].size);
        assert_int_equal(segment->process, w->segments[i].process);
        assert_int_equal(segment->device, w->segments[i].device);
        assert_int_equal(segment->is_large, segment->total_size > (UINT64_C(2) << 20));
        uint64_t at = segment->address;
        for (uint32_t b = 0; b < segment->block_count; b++) {
            const struct block *block = &state->blocks[segment->first_block + b];
            assert_int_equal(block->address, at); /* blocks tile the segment */
            at += block->size;
            if (block->state == BLOCK_INACTIVE)
                continue;
            size_t found = world_find_block(w, segment->process, segment->device, block->address);
            assert_true(found != SIZE_MAX);
            assert_int_equal(block->size, w->blocks[found].size);
            assert_int_equal(block->requested, w->blocks[found].requested);
            assert_int_equal(block->state, w->blocks[found].state);
            assert_int_equal(block->context, w->blocks[found].before ? CONTEXT_NONE : w->blocks[found].context);
            assert_int_equal((block->flags & BLOCK_BEFORE_RECORDING) != 0, w->blocks[found].before);
            living++;
        }
        assert_int_equal(at, segment->address + segment->total_size);
    }
    assert_int_equal(living, w->block_count);
}

/* The world as an end state, the way a reader gives it: holes are inactive blocks. */
static int compare_blocks(const void *a, const void *b)
{
    const struct world_block *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void world_to_end(struct snapshot *s, struct world *w)
{
    qsort(w->segments, w->segment_count, sizeof(w->segments[0]), compare_world_segments);
    for (size_t i = 0; i < w->segment_count; i++) {
        const struct world_segment *from = &w->segments[i];
        struct segment segment = {.address = from->address, .total_size = from->size, .process = from->process,
                                  .device = from->device, .context = CONTEXT_NONE, .pool = NONE32,
                                  .is_large = from->size > (UINT64_C(2) << 20)};
        assert_int_equal(state_add_segment(&s->end, &segment), 0);
        struct world_block inside[WORLD_MAX];
        size_t count = 0;
        for (size_t b = 0; b < w->block_count; b++)
            if (w->block_process[b] == from->process && w->block_device[b] == from->device &&
                w->blocks[b].address >= from->address && w->blocks[b].address < from->address + from->size)
                inside[count++] = w->blocks[b];
        qsort(inside, count, sizeof(inside[0]), compare_blocks);
        uint64_t at = from->address;
        for (size_t b = 0; b <= count; b++) {
            uint64_t next = b < count ? inside[b].address : from->address + from->size;
            struct block hole = {.address = at, .size = next - at, .context = CONTEXT_NONE};
            if (next > at)
                assert_int_equal(state_add_block(&s->end, &hole), 0);
            if (b == count)
                break;
            struct block block = {.address = next, .size = inside[b].size, .requested = inside[b].requested,
                                  .context = inside[b].before ? CONTEXT_NONE : inside[b].context,
                                  .state = inside[b].state};
            assert_int_equal(state_add_block(&s->end, &block), 0);
            at = next + inside[b].size;
        }
    }
    s->end.moment = s->entries.count;
    s->end.exact = true;
}

#define STEPS 300

/* Run a program; the first `lost` entries are not in the trace.  Then ask for every moment. */
static void check_program(uint64_t seed, size_t lost)
{
    static struct world worlds[STEPS + 1], w;
    static uint64_t moments[STEPS + 1];
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    struct process other = s->processes[0];
    assert_int_equal(snapshot_add_process(s, &other), 1);
    uint32_t contexts[8];
    for (int i = 0; i < 8; i++)
        contexts[i] = snapshot_add_context(s, STACK_EMPTY);
    random_state = seed;
    memset(&w, 0, sizeof(w));
    for (size_t i = 0; i < lost; i++)
        step(s, &w, (uint16_t)random_below(2), (uint16_t)random_below(2), contexts[random_below(8)]);
    s->entries.count = 0; /* overwritten */
    for (size_t b = 0; b < w.block_count; b++)
        w.blocks[b].before = true;
    for (size_t i = 0; i < STEPS; i++) {
        worlds[i] = w;
        moments[i] = s->entries.count;
        step(s, &w, (uint16_t)random_below(2), (uint16_t)random_below(2), contexts[random_below(8)]);
    }
    world_to_end(s, &w);
    for (size_t i = 0; i < STEPS; i++) {
        struct state state;
        struct state_faults faults;
        struct error err;
        if (moments[i] == s->entries.count)
            continue;
        if (state_at_counting(s, moments[i], &state, &faults, &err))
            fail_msg("%s", err.message);
        assert_int_equal(state.moment, moments[i]);
        assert_int_equal(faults.unknown_allocs + faults.unknown_segments + faults.overlaps + faults.outside, 0);
        assert_state_is_world(s, &state, &worlds[i]);
        state_free(&state);
    }
    snapshot_free(s);
}

static void every_moment_of_a_random_trace_is_what_a_forward_model_says(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++)
        check_program(seed, 0);
}

static void also_where_the_beginning_of_the_trace_is_lost(void **unused)
{
    (void)unused;
    for (uint64_t seed = 100; seed < 112; seed++)
        check_program(seed, 50 + seed);
}

/* --- single cases ----------------------------------------------------------------------------------------------- */

static void the_last_moment_is_the_end_state_unchanged(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 0, PAGE, 2 << 20, CONTEXT_NONE);
    struct segment segment = {.address = PAGE, .total_size = 2 << 20, .pool = NONE32, .context = CONTEXT_NONE};
    struct block block = {.address = PAGE, .size = 2 << 20, .requested = 777, .context = CONTEXT_NONE};
    state_add_segment(&s->end, &segment);
    state_add_block(&s->end, &block);
    s->end.exact = true;
    struct state state;
    assert_int_equal(state_at(s, 1, &state, NULL), 0);
    assert_int_equal(state.block_count, 1);
    assert_memory_equal(state.blocks, s->end.blocks, sizeof(struct block));
    assert_memory_equal(state.segments, s->end.segments, sizeof(struct segment));
    assert_true(state.exact);
    state_free(&state);
    struct error err;
    assert_int_equal(state_at(s, 2, &state, &err), STATUS_NOT_FOUND);
    snapshot_free(s);
}

static void a_guessed_size_is_bounded_by_its_neighbour_and_the_state_says_inexact(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    struct segment segment = {.address = PAGE, .total_size = 2 << 20, .pool = NONE32, .context = CONTEXT_NONE};
    struct block hole = {.address = PAGE, .size = 512, .context = CONTEXT_NONE};
    struct block living = {.address = PAGE + 512, .size = 1024, .requested = 1000, .context = CONTEXT_NONE,
                           .state = BLOCK_ACTIVE_ALLOCATED};
    struct block rest = {.address = PAGE + 1536, .size = (2 << 20) - 1536, .context = CONTEXT_NONE};
    state_add_segment(&s->end, &segment);
    state_add_block(&s->end, &hole);
    state_add_block(&s->end, &living);
    state_add_block(&s->end, &rest);
    add_entry(s, ACTION_FREE_REQUESTED, 0, 0, PAGE, 600, CONTEXT_NONE); /* rounds to 1024, but 512 is all there is */
    add_entry(s, ACTION_FREE_COMPLETED, 0, 0, PAGE, 600, CONTEXT_NONE);
    struct state state;
    assert_int_equal(state_at(s, 0, &state, NULL), 0);
    assert_false(state.exact);
    assert_int_equal(state.blocks[0].size, 512);
    assert_int_equal(state.blocks[0].requested, 600);
    assert_int_equal(state.blocks[0].flags & BLOCK_BEFORE_RECORDING, BLOCK_BEFORE_RECORDING);
    assert_int_equal(state.blocks[1].size, 1024);
    assert_int_equal(state.segments[0].allocated_size, 1536);
    state_free(&state);
    snapshot_free(s);
}

static void contradictions_are_counted_and_never_fatal(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed < 60; seed++) {
        struct snapshot *s = snapshot_new(seed % 3 ? SOURCE_TORCH : SOURCE_RECORDED);
        s->processes[0].implied_blocks = seed % 4 == 0;
        random_state = seed;
        for (int i = 0; i < 400; i++) { /* any action on any address, overlapping, twice, huge */
            uint64_t size = random_below(20) ? random_below(5 << 20) : UINT64_MAX - random_below(1000);
            uint64_t address = random_below(20) ? random_below(200) << 18 : UINT64_MAX - random_below(100000);
            add_entry(s, (enum action)random_below(ACTION_COUNT), 0, (uint16_t)random_below(2), address, size, CONTEXT_NONE);
            s->entries.flags[i] = random_below(10) ? 0 : (uint8_t)random_below(32);
        }
        struct error err;
        for (uint64_t moment = 0; moment < 400; moment += 7) {
            struct state state;
            assert_int_equal(state_at(s, moment, &state, &err), 0);
            struct snapshot probe = *s;
            probe.end = state;
            if (!snapshot_is_valid(&probe, &err))
                fail_msg("seed %llu, moment %llu: %s", (unsigned long long)seed, (unsigned long long)moment, err.message);
            state_free(&state);
        }
        snapshot_free(s);
    }
}

static void a_free_of_an_unknown_address_is_a_block_of_before(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    add_entry(s, ACTION_FREE_REQUESTED, 0, 0, 5 * PAGE, 4096, CONTEXT_NONE);
    add_entry(s, ACTION_FREE_COMPLETED, 0, 0, 5 * PAGE, 4096, CONTEXT_NONE);
    struct state state;
    struct state_faults faults;
    assert_int_equal(state_at_counting(s, 0, &state, &faults, NULL), 0);
    assert_int_equal(state.segment_count, 1); /* no segment holds it, so it gets one: its bytes are not lost */
    assert_int_equal(state.segments[0].total_size, 4096);
    assert_int_equal(faults.outside, 1);
    assert_int_equal(state.blocks[0].flags & BLOCK_BEFORE_RECORDING, BLOCK_BEFORE_RECORDING);
    state_free(&state);
    snapshot_free(s);
}

/* --- mapped ranges ---------------------------------------------------------------------------------------------- */

#define MIB (UINT64_C(1) << 20)

static void expandable_segments_shrink_and_grow_with_their_mappings(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    uint64_t base = UINT64_C(0x302000000);
    uint32_t context = snapshot_add_context(s, STACK_EMPTY);
    add_entry(s, ACTION_SEGMENT_MAP, 0, 0, base, 20 * MIB, context);
    add_entry(s, ACTION_ALLOC, 0, 0, base, 15 * MIB, context);
    add_entry(s, ACTION_SEGMENT_MAP, 0, 0, base + 20 * MIB, 40 * MIB, context);
    add_entry(s, ACTION_SEGMENT_UNMAP, 0, 0, base + 20 * MIB, 20 * MIB, CONTEXT_NONE);
    struct segment first = {.address = base, .total_size = 20 * MIB, .pool = NONE32, .context = CONTEXT_NONE,
                            .is_large = true, .is_expandable = true};
    struct segment second = first;
    second.address = base + 40 * MIB;
    struct block living = {.address = base, .size = 15 * MIB, .requested = 15 * MIB, .context = context,
                           .state = BLOCK_ACTIVE_ALLOCATED};
    struct block hole = {.address = base + 15 * MIB, .size = 5 * MIB, .context = CONTEXT_NONE};
    struct block free_block = {.address = base + 40 * MIB, .size = 20 * MIB, .context = CONTEXT_NONE};
    state_add_segment(&s->end, &first);
    state_add_block(&s->end, &living);
    state_add_block(&s->end, &hole);
    state_add_segment(&s->end, &second);
    state_add_block(&s->end, &free_block);
    static const struct {
        uint64_t moment, segments, mapped, blocks;
    } expected[] = {{0, 0, 0, 0}, {1, 1, 20, 1}, {2, 1, 20, 2}, {3, 1, 60, 2}, {4, 2, 40, 3}};
    for (size_t i = 0; i < 5; i++) {
        struct state state;
        assert_int_equal(state_at(s, expected[i].moment, &state, NULL), 0);
        assert_int_equal(state.segment_count, expected[i].segments);
        assert_int_equal(state.block_count, expected[i].blocks);
        uint64_t mapped = 0;
        for (size_t k = 0; k < state.segment_count; k++) {
            mapped += state.segments[k].total_size;
            assert_true(state.segments[k].is_expandable && state.segments[k].is_large);
        }
        assert_int_equal(mapped, expected[i].mapped * MIB);
        assert_true(state.exact);
        state_free(&state);
    }
    snapshot_free(s);
}

/* --- recordings: a segment is its block ------------------------------------------------------------------------- */

static void where_nothing_caches_each_segment_is_its_block(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    s->processes[0].implied_blocks = true;
    uint32_t one = snapshot_add_context(s, STACK_EMPTY), two = snapshot_add_context(s, STACK_EMPTY);
    add_entry(s, ACTION_SEGMENT_FREE, 0, 0, 7 * PAGE, 3000, two); /* from before */
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 0, PAGE, 1000, one);
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 0, 2 * PAGE, 5 * MIB, two);
    add_entry(s, ACTION_SEGMENT_FREE, 0, 0, PAGE, 1000, two);
    struct segment segment = {.address = 2 * PAGE, .total_size = 5 * MIB, .pool = NONE32, .context = two, .is_large = true};
    struct block block = {.address = 2 * PAGE, .size = 5 * MIB, .requested = 5 * MIB - 7, .context = two,
                          .state = BLOCK_ACTIVE_ALLOCATED};
    state_add_segment(&s->end, &segment);
    state_add_block(&s->end, &block);
    struct state state;
    assert_int_equal(state_at(s, 3, &state, NULL), 0);
    assert_true(state.exact);
    assert_int_equal(state.segment_count, 2);
    assert_int_equal(state.block_count, 2);
    assert_int_equal(state.blocks[0].size, 1000);
    assert_int_equal(state.blocks[0].context, one);
    assert_int_equal(state.blocks[0].flags, 0);
    assert_false(state.segments[0].is_large);
    assert_int_equal(state.blocks[1].requested, 5 * MIB - 7);
    state_free(&state);
    assert_int_equal(state_at(s, 0, &state, NULL), 0);
    assert_int_equal(state.segment_count, 1);
    assert_int_equal(state.blocks[0].size, 3000);
    assert_int_equal(state.blocks[0].flags, BLOCK_BEFORE_RECORDING);
    assert_int_equal(state.blocks[0].context, CONTEXT_NONE);
    state_free(&state);
    snapshot_free(s);
}

static void the_handles_of_arrays_may_lie_closer_than_their_sizes(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    s->processes[0].implied_blocks = true;
    for (uint64_t i = 0; i < 3; i++)
        add_entry(s, ACTION_SEGMENT_ALLOC, 0, 0, PAGE + 64 * i, 4096, CONTEXT_NONE);
    for (uint64_t i = 0; i < 3; i++)
        add_entry(s, ACTION_SEGMENT_FREE, 0, 0, PAGE + 64 * i, 4096, CONTEXT_NONE);
    struct state state;
    assert_int_equal(state_at(s, 3, &state, NULL), 0);
    assert_int_equal(state.segment_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(state.segments[i].total_size, 4096);
    state_free(&state);
    snapshot_free(s);
}

static void a_free_that_the_driver_refused_leaves_the_memory_there(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_RECORDED);
    s->processes[0].implied_blocks = true;
    uint32_t one = snapshot_add_context(s, STACK_EMPTY);
    add_entry(s, ACTION_SEGMENT_ALLOC, 0, 0, PAGE, 1000, one);
    add_entry(s, ACTION_SEGMENT_FREE, 0, 0, PAGE, 1000, one);
    add_entry(s, ACTION_SEGMENT_FREE, 0, 0, PAGE, 1000, one);
    s->entries.flags[2] = ENTRY_FAILED;
    struct segment segment = {.address = PAGE, .total_size = 1000, .pool = NONE32, .context = one};
    struct block block = {.address = PAGE, .size = 1000, .requested = 1000, .context = one, .state = BLOCK_ACTIVE_ALLOCATED};
    state_add_segment(&s->end, &segment);
    state_add_block(&s->end, &block);
    const size_t expected[] = {0, 1, 0, 1};
    for (uint64_t moment = 0; moment < 4; moment++) {
        struct state state;
        struct state_faults faults;
        assert_int_equal(state_at_counting(s, moment, &state, &faults, NULL), 0);
        assert_int_equal(state.segment_count, expected[moment]);
        if (expected[moment])
            assert_int_equal(state.blocks[0].context, one);
        assert_int_equal(faults.unknown_segments, 0);
        state_free(&state);
    }
    snapshot_free(s);
}

static void case_10_blocks_older_than_the_trace_are_marked_in_the_end_state(void **unused)
{
    (void)unused;
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    struct segment segment = {.address = PAGE, .total_size = 2 << 20, .pool = NONE32, .context = CONTEXT_NONE};
    state_add_segment(&s->end, &segment);
    for (uint64_t i = 0; i < 4; i++) {
        struct block block = {.address = PAGE + i * (512 << 10), .size = 512 << 10, .requested = 512 << 10,
                              .context = CONTEXT_NONE, .state = i == 3 ? BLOCK_INACTIVE : BLOCK_ACTIVE_ALLOCATED};
        state_add_block(&s->end, &block);
    }
    add_entry(s, ACTION_ALLOC, 0, 0, PAGE + (512 << 10), 512 << 10, CONTEXT_NONE);
    s->end.moment = 1;
    struct state marked;
    assert_int_equal(state_copy(&marked, &s->end), 0);
    assert_int_equal(state_mark_before_recording(s, &marked, NULL), 0);
    assert_int_equal(marked.blocks[0].flags, BLOCK_BEFORE_RECORDING);
    assert_int_equal(marked.blocks[1].flags, 0);
    assert_int_equal(marked.blocks[2].flags, BLOCK_BEFORE_RECORDING);
    assert_int_equal(marked.blocks[3].flags, 0);
    state_free(&marked);
    snapshot_free(s);
}

static void case_17_traces_of_several_devices_come_onto_one_time_axis(void **unused)
{
    (void)unused;
    static const int64_t times[2][4] = {{0, 10, 9, 30}, {5, 10, 20, 31}}; /* one goes back a little: order is what counts */
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    s->trace_count = 3;
    for (uint16_t device = 0; device < 2; device++)
        for (int i = 0; i < 4; i++) {
            add_entry(s, ACTION_ALLOC, 0, device * 2, PAGE * (uint64_t)(i + 1), 512, CONTEXT_NONE);
            s->entries.time[s->entries.count - 1] = times[device][i];
        }
    uint32_t key = FIELD_ACTION;
    s->entries.shape[6] = (uint16_t)snapshot_shape(s, ROW_ENTRY, &key, 1);
    assert_int_equal(snapshot_set_odd(s, ROW_ENTRY, 6, 0, value_make(VALUE_TRUE, 0)), 0);
    assert_int_equal(snapshot_order_by_time(s), 0);
    static const struct {
        uint16_t device;
        uint64_t page;
    } expected[] = {{0, 1}, {2, 1}, {0, 2}, {0, 3}, {2, 2}, {2, 3}, {0, 4}, {2, 4}};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(s->entries.device[i], expected[i].device);
        assert_int_equal(s->entries.address[i], PAGE * expected[i].page);
    }
    value content;
    assert_true(snapshot_get_odd(s, ROW_ENTRY, 5, 0, &content)); /* what was odd about an entry went with it */
    assert_false(snapshot_get_odd(s, ROW_ENTRY, 6, 0, &content));
    s->entries.flags[3] = ENTRY_NO_TIME;
    s->entries.time[0] = 1000;
    assert_int_equal(snapshot_order_by_time(s), 0);
    assert_int_equal(s->entries.time[0], 1000); /* without times nothing is moved */
    snapshot_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_moment_of_a_random_trace_is_what_a_forward_model_says),
        cmocka_unit_test(also_where_the_beginning_of_the_trace_is_lost),
        cmocka_unit_test(the_last_moment_is_the_end_state_unchanged),
        cmocka_unit_test(a_guessed_size_is_bounded_by_its_neighbour_and_the_state_says_inexact),
        cmocka_unit_test(contradictions_are_counted_and_never_fatal),
        cmocka_unit_test(a_free_of_an_unknown_address_is_a_block_of_before),
        cmocka_unit_test(expandable_segments_shrink_and_grow_with_their_mappings),
        cmocka_unit_test(where_nothing_caches_each_segment_is_its_block),
        cmocka_unit_test(the_handles_of_arrays_may_lie_closer_than_their_sizes),
        cmocka_unit_test(a_free_that_the_driver_refused_leaves_the_memory_there),
        cmocka_unit_test(case_17_traces_of_several_devices_come_onto_one_time_axis),
        cmocka_unit_test(case_10_blocks_older_than_the_trace_are_marked_in_the_end_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
