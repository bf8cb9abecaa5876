/*
 * Stacks that were walked before, walked again without their tables.
 *
 * Where a frame keeps its return address and its caller's frame pointer follows from three numbers: program counter,
 * stack pointer and frame pointer.  libunwind says it once (walk_learn); from then on a frame costs the look-up of those
 * three and two reads of the stack (walk_frames).  The stack itself is read every time, so what changed in it is seen.
 * What libunwind does otherwise, signal frames above all, is marked and left to it, and the first walk of a learned stack
 * must say what libunwind said.  Memory is the thread's own; nothing is locked.  x86-64; elsewhere nothing is learned.
 */
#include "record/internal.h"

#include <string.h>

#if defined(__x86_64__)

#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>

#define UNIT sizeof(uintptr_t)
#define FARTHEST 65000u     /* units between a frame's stack pointer and its caller's */
#define ASK_LIBUNWIND UINT16_MAX
#define BY_POINTER (UINT16_MAX - 1) /* of a realigned frame: a word below the frame pointer says where its caller's is */
#define NEIGHBOURS 2u       /* places where a frame may be */
#define LEARNING_COSTS 16u  /* credits; a walk that succeeds earns one */
#define OWN_STEPS 8         /* between a walk's first frame and libunwind's */
#define UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

static int (*get_context)(unw_tdep_context_t *);
static int (*begin)(unw_cursor_t *, unw_context_t *);
static int (*step)(unw_cursor_t *);
static int (*get_register)(unw_cursor_t *, int, unw_word_t *);
static int (*get_place)(unw_cursor_t *, int, unw_save_loc_t *);
static int (*is_signal)(unw_cursor_t *);
static bool can_learn;

static bool look_up(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof(found));
    return found != NULL;
}

void walk_start(void *library)
{
    can_learn = look_up(library, "_Ux86_64_getcontext", &get_context) &&
                look_up(library, "_ULx86_64_init_local", &begin) && look_up(library, "_ULx86_64_step", &step) &&
                look_up(library, "_ULx86_64_get_reg", &get_register) &&
                look_up(library, "_ULx86_64_get_save_loc", &get_place) &&
                look_up(library, "_ULx86_64_is_signal_frame", &is_signal);
}

/* --- walking ---------------------------------------------------------------------------------------------------------- */

static inline uint32_t place_of(const struct walk_state *state)
{
    return (uint32_t)(fold(state->pc ^ state->sp << 17, state->bp) & (WALK_FRAMES - 1) & ~(uint64_t)(NEIGHBOURS - 1));
}

static inline bool is_state(const struct walk_state *a, const struct walk_state *b)
{
    return a->pc == b->pc && a->sp == b->sp && a->bp == b->bp;
}

static inline struct walk_frame *find(struct walk_memory *memory, const struct walk_state *state)
{
    struct walk_frame *frame = &memory->frames[place_of(state)];
    for (unsigned i = 0; i < NEIGHBOURS; i++, frame++)
        if (state->pc && is_state(&frame->state, state))
            return frame;
    return NULL;
}

/* How far a caller's stack pointer may be. */
static inline bool is_above(uintptr_t caller, uintptr_t sp)
{
    return caller % UNIT == 0 && caller > sp && caller - sp <= FARTHEST * UNIT;
}

/* The caller of a frame whose places are known; a state of zeros is none that anybody knows. */
UNCHECKED static inline struct walk_state caller_of(const struct walk_frame *frame)
{
    const uintptr_t *stack = (const uintptr_t *)frame->state.sp;
    const uintptr_t *place = stack + (frame->return_place - 1);
    if (__builtin_expect(frame->return_place == BY_POINTER, 0)) {
        uintptr_t end = ((const uintptr_t *)frame->state.bp)[-1];
        if (!is_above(end, frame->state.sp))
            return (struct walk_state){0, 0, 0};
        place = (const uintptr_t *)end - 1;
    }
    return (struct walk_state){*place, (uintptr_t)(place + 1),
                               frame->pointer_place ? stack[frame->pointer_place - 1] : frame->state.bp};
}

static enum walk_end walk(struct walk_memory *memory, const struct walk_state *from, void **frames, size_t limit,
                          size_t *count)
{
    struct walk_frame *frame = find(memory, from);
    *count = 0;
    while (frame) {
        if (__builtin_expect(*count == limit, 0))
            return WALK_DONE;
        frames[(*count)++] = (void *)frame->state.pc;
        if (frame->return_place == ASK_LIBUNWIND)
            return WALK_REFUSED;
        if (!frame->return_place)
            return WALK_DONE;
        struct walk_state caller = caller_of(frame);
        struct walk_frame *guess = &memory->frames[frame->caller];
        if (__builtin_expect(!is_state(&guess->state, &caller), 0)) {
            guess = find(memory, &caller);
            if (guess)
                frame->caller = (uint32_t)(guess - memory->frames);
        }
        frame = guess;
    }
    return WALK_UNKNOWN;
}

enum walk_end walk_frames(struct walk_memory *memory, const struct walk_state *from, void **frames, size_t limit,
                          size_t *count)
{
    if (__builtin_expect(memory->distrusted, 0))
        return WALK_REFUSED;
    enum walk_end end = walk(memory, from, frames, limit, count);
    if (__builtin_expect(end == WALK_DONE, 1))
        memory->earned++;
    else if (end == WALK_REFUSED && ++memory->refused > 256 && memory->refused / 4 > memory->earned)
        memory->distrusted = true; /* most stacks here are for libunwind: do not walk them twice */
    return end;
}

void walk_forget(struct walk_memory *memory)
{
    memset(memory->frames, 0, sizeof(memory->frames));
}

/* --- learning --------------------------------------------------------------------------------------------------------- */

/* Where libunwind is. */
struct position {
    struct walk_state state;
    uintptr_t pointer_from; /* where the frame pointer was saved; 0: it was not */
};

static bool read_position(unw_cursor_t *cursor, struct position *position)
{
    unw_word_t pc, sp, bp;
    unw_save_loc_t place;
    if (get_register(cursor, UNW_REG_IP, &pc) < 0 || get_register(cursor, UNW_REG_SP, &sp) < 0 ||
        get_register(cursor, UNW_X86_64_RBP, &bp) < 0 ||
        get_place(cursor, UNW_X86_64_RBP, &place) < 0 || place.type == UNW_SLT_REG)
        return false;
    position->state = (struct walk_state){pc, sp, bp};
    position->pointer_from = place.type == UNW_SLT_MEMORY ? place.u.addr : 0;
    return true;
}

UNCHECKED static uintptr_t word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

/* Both places from a frame and its caller, if they are plain ones.  A frame with a frame pointer has the return address
 * right above it; one that is realigned has it somewhere above, and a word for where. */
static bool places_of(const struct position *from, const struct position *to, struct walk_frame *frame)
{
    uintptr_t sp = from->state.sp, end = to->state.sp, pointer = to->pointer_from;
    if (sp % UNIT || !is_above(end, sp) || word_at(end - UNIT) != to->state.pc)
        return false;
    frame->return_place = (uint16_t)((end - UNIT - sp) / UNIT + 1);
    if (from->pointer_from == pointer)
        return from->state.bp == to->state.bp;
    if (pointer % UNIT || pointer < sp || pointer >= end || word_at(pointer) != to->state.bp)
        return false;
    frame->pointer_place = (uint16_t)((pointer - sp) / UNIT + 1);
    if (pointer != from->state.bp || pointer == end - 2 * UNIT)
        return true;
    frame->return_place = BY_POINTER;
    return pointer > sp && word_at(pointer - UNIT) == end;
}

static void put(struct walk_memory *memory, const struct walk_frame *frame)
{
    struct walk_frame *place = &memory->frames[place_of(&frame->state)];
    unsigned chosen = memory->turn++ % NEIGHBOURS;
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        if (!place[i].state.pc)
            chosen = i;
    place[chosen] = *frame;
}

static void remember(struct walk_memory *memory, const struct walk_frame *frame)
{
    struct walk_frame *known = find(memory, &frame->state);
    if (!known)
        put(memory, frame);
    else if (known->return_place != frame->return_place || known->pointer_place != frame->pointer_place)
        known->return_place = ASK_LIBUNWIND; /* more than the three numbers decides */
}

/* libunwind goes frame by frame from the inner end until what is left is known. */
static void learn_from(struct walk_memory *memory, unw_cursor_t *cursor, struct position here, size_t limit)
{
    struct position there;
    size_t known;
    for (size_t i = 0; i < limit && walk(memory, &here.state, memory->check, limit - i, &known) == WALK_UNKNOWN;
         i++, here = there) {
        struct walk_frame frame = {.state = here.state};
        bool is_plain = is_signal(cursor) == 0;
        int moved = is_plain ? step(cursor) : 1;
        if (moved > 0 && (!is_plain || !read_position(cursor, &there) || !places_of(&here, &there, &frame)))
            frame.return_place = ASK_LIBUNWIND;
        remember(memory, &frame);
        if (moved <= 0 || frame.return_place == ASK_LIBUNWIND)
            return;
    }
}

/* Is this stack worth it?  It came twice, and learning has not been in vain so far. */
static bool is_worth_learning(struct walk_memory *memory, const struct walk_state *from, uint64_t stack)
{
    uint64_t mark = fold(stack, from->sp);
    uint32_t *seen = &memory->seen[mark % WALK_SEEN];
    if (*seen != (uint32_t)(mark >> 32)) {
        *seen = (uint32_t)(mark >> 32);
        return false;
    }
    *seen = 0;
    if (memory->learned / LEARNING_COSTS > memory->earned / LEARNING_COSTS + WALK_CREDIT)
        return false;
    memory->learned += LEARNING_COSTS;
    return true;
}

static bool find_start(unw_cursor_t *cursor, struct position *here, const struct walk_state *from)
{
    for (int i = 0; i < OWN_STEPS && step(cursor) > 0 && read_position(cursor, here); i++)
        if (here->state.sp == from->sp)
            return is_state(&here->state, from);
    return false;
}

__attribute__((noinline)) void walk_learn(struct walk_memory *memory, const struct walk_state *from, void *const *frames,
                                          size_t count, uint64_t stack)
{
    unw_context_t context;
    unw_cursor_t cursor;
    struct position here;
    if (!can_learn || memory->distrusted || !is_worth_learning(memory, from, stack))
        return;
    get_context(&context);
    if (begin(&cursor, &context) < 0 || !find_start(&cursor, &here, from))
        return;
    learn_from(memory, &cursor, here, count);
    size_t again;
    enum walk_end end = walk(memory, from, memory->check, count, &again);
    if (end == WALK_DONE && (again != count || memcmp(memory->check, frames, again * sizeof(*frames)) != 0))
        memory->distrusted = true;
}

#else

void walk_start(void *library)
{
    (void)library;
}

enum walk_end walk_frames(struct walk_memory *memory, const struct walk_state *from, void **frames, size_t limit,
                          size_t *count)
{
    (void)memory, (void)from, (void)frames, (void)limit, (void)count;
    return WALK_REFUSED;
}

void walk_learn(struct walk_memory *memory, const struct walk_state *from, void *const *frames, size_t count,
                uint64_t stack)
{
    (void)memory, (void)from, (void)frames, (void)count, (void)stack;
}

void walk_forget(struct walk_memory *memory)
{
    (void)memory;
}

#endif
