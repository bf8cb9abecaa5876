/*
 * Python's part of a stack: found, walked, compared with the thread's last one, and put into the file as a trie beside
 * the native one.  The interpreter is looked for when the loader's list changed, by the thread that records then; it may
 * be an embedded one that came after the first event, or go away again.
 */
#include "record/internal.h"

#include <stdio.h>
#include <string.h>

/* An interpreter as it was found.  Other threads may be reading one when the next is found: that gets the place of the
 * one that went longest ago. */
struct finding {
    bool usable; /* `layout` holds */
    bool proved; /* frames were read with it, through the kernel: from now on they are read directly */
    bool loose;  /* its library may be unloaded */
    struct python_symbols symbols;
    struct python_layout layout;
};
#define FINDINGS 8u
static struct finding findings[FINDINGS];
static struct {
    uint32_t generation; /* of the modules when it was looked for, + 1; 0: never in this file */
    uint32_t current;    /* of the findings */
} python;

static struct finding *current_finding(void)
{
    return &findings[__atomic_load_n(&python.current, __ATOMIC_ACQUIRE)];
}

static struct trie trie = {.table = RING_PYTHON_NODES, .first = 4096};

/* --- finding ---------------------------------------------------------------------------------------------------------- */

static const char *reason_of(enum ring_python_state state)
{
    switch (state) {
    case RING_PYTHON_FREE_THREADED:
        return "a free-threaded build";
    case RING_PYTHON_DEBUG_BUILD:
        return "a debug build";
    case RING_PYTHON_UNREADABLE:
        return "its frames are not laid out as expected";
    default:
        return "not a version that is known";
    }
}

/* One line, once: no stdio, which the program may hold. */
static void say_not_recorded(uint32_t version, enum ring_python_state state)
{
    static uint32_t said;
    char line[160], number[32] = "";
    if (recorder.in_memory || __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        return;
    if (version)
        snprintf(number, sizeof(number), " %u.%u", version >> 24, version >> 16 & 0xff);
    int length = snprintf(line, sizeof(line), "cudamem: no Python frames are recorded: Python%s: %s\n", number,
                          reason_of(state));
    if (length > 0 && length < (int)sizeof(line))
        recorder_write(line, (size_t)length);
}

static void tell(const struct finding *finding, enum ring_python_state state)
{
    struct ring_header *header = recorder.header;
    header->python_version = finding->layout.version;
    __atomic_store_n(&header->python_state, (uint32_t)state, __ATOMIC_RELEASE);
    if (state != RING_PYTHON_RECORDED)
        say_not_recorded(finding->layout.version, state);
}

static void tell_of_loop(const struct finding *finding)
{
    struct ring_header *header = recorder.header;
    stack_refresh_modules();
    uint64_t offset = 0;
    header->python_module = modules_resolve(finding->symbols.loop, &offset);
    header->python_offset = offset;
    header->python_size = finding->symbols.loop_size;
}

static bool is_same(const struct python_symbols *before, const struct python_symbols *found)
{
    return before->thread_state == found->thread_state && before->runtime == found->runtime &&
           before->version == found->version;
}

static void take_finding(const struct python_symbols *found)
{
    uint32_t next = (python.current + 1) % FINDINGS;
    struct finding *finding = &findings[next];
    *finding = (struct finding){.symbols = *found, .loose = found->thread_state && !found->is_lasting};
    if (found->thread_state) {
        enum ring_python_state state = python_layout_of(found, &finding->layout);
        tell_of_loop(finding);
        tell(finding, state);
        finding->usable = state == RING_PYTHON_RECORDED;
    }
    __atomic_store_n(&python.current, next, __ATOMIC_RELEASE);
}

/* The loader's list is not the one that it was. */
static void look(uint32_t generation)
{
    struct python_symbols found;
    if (!lock_try(&recorder.intern_lock))
        return;
    python_find(&found);
    if (!python.generation || !is_same(&current_finding()->symbols, &found))
        take_finding(&found);
    __atomic_store_n(&python.generation, generation + 1, __ATOMIC_RELEASE);
    lock_release(&recorder.intern_lock);
}

static void give_up(struct finding *finding)
{
    if (!lock_try(&recorder.intern_lock))
        return;
    if (__atomic_exchange_n(&finding->usable, false, __ATOMIC_RELAXED))
        tell(finding, RING_PYTHON_UNREADABLE);
    lock_release(&recorder.intern_lock);
}

void python_forget(void)
{
    python.generation = 0;
    trie_forget(&trie);
    python_code_forget();
}

/* --- the thread's state ----------------------------------------------------------------------------------------------- */

/* While the interpreter ends, the states of other threads go away under them; the one that ends it keeps its own. */
static bool is_going(const struct python_layout *layout, uint64_t thread)
{
    uint64_t ending;
    memcpy(&ending, (const void *)(uintptr_t)(layout->runtime + layout->finalizing), sizeof(ending));
    return ending && ending != thread;
}

static uint64_t thread_state(const struct finding *finding)
{
    uint64_t thread = (uint64_t)(uintptr_t)finding->symbols.thread_state();
    const struct python_layout *layout = &finding->layout;
    return thread && !is_going(layout, thread) && !python_is_ambiguous(layout, thread) ? thread : 0;
}

/* --- numbers ---------------------------------------------------------------------------------------------------------- */

static uint32_t intern(const struct python_layout *layout, uint32_t parent, const struct python_frame *frame)
{
    uint32_t node = RING_STACK_NONE;
    if (!lock_try(&recorder.intern_lock))
        return RING_STACK_NONE;
    int64_t code = python_code_number(layout, frame);
    if (code >= 0) {
        struct trie_node wanted = {parent, (uint32_t)code,
                                   (uint32_t)frame->instruction | (uint64_t)frame->flags << 32};
        node = trie_find(&trie, &wanted);
    }
    lock_release(&recorder.intern_lock);
    return node;
}

static uint32_t node_of(const struct python_layout *layout, struct python_memory *memory, uint32_t parent,
                        const struct python_frame *frame)
{
    uint64_t key = fold(frame->identity ^ parent, (uint32_t)frame->instruction | (uint64_t)(frame->flags + 1) << 32);
    size_t place = key & (RECORDER_PYTHON_CACHE - 1);
    if (memory->known[place].key == key && memory->known[place].node != RING_STACK_NONE)
        return memory->known[place].node;
    uint32_t node = intern(layout, parent, frame);
    memory->known[place].key = key;
    memory->known[place].node = node;
    return node;
}

static bool is_same_frame(const struct python_frame *a, const struct python_frame *b)
{
    return a->identity == b->identity && a->instruction == b->instruction && a->flags == b->flags;
}

/* How many frames from the outer end are those of the last time: their nodes are known. */
static uint32_t unchanged(const struct python_memory *memory, const struct python_walk *walk)
{
    const struct python_frame *last = memory->frames[memory->turn] + memory->count, *now = walk->frames + walk->count;
    uint32_t most = memory->count < walk->count ? memory->count : walk->count, same = 0;
    while (same < most && is_same_frame(--last, --now))
        same++;
    return same;
}

static uint32_t number_frames(const struct python_layout *layout, struct python_memory *memory,
                              const struct python_walk *walk)
{
    uint32_t depth = unchanged(memory, walk);
    uint32_t node = depth ? memory->nodes[depth - 1] : RING_STACK_EMPTY;
    for (; depth < walk->count; depth++) {
        node = node_of(layout, memory, node, &walk->frames[walk->count - 1 - depth]);
        memory->nodes[depth] = node;
        if (node == RING_STACK_NONE) {
            memory->count = 0;
            return RING_STACK_NONE;
        }
    }
    memory->turn = !memory->turn;
    memory->count = walk->count;
    return node;
}

/* --- capture ---------------------------------------------------------------------------------------------------------- */

uint32_t python_capture(struct recorder_thread_block *block, uint64_t now)
{
    uint32_t generation = modules_current(now, current_finding()->loose);
    if (__builtin_expect(__atomic_load_n(&python.generation, __ATOMIC_ACQUIRE) != generation + 1, 0))
        look(generation);
    struct finding *finding = current_finding();
    if (!__atomic_load_n(&finding->usable, __ATOMIC_RELAXED))
        return RING_STACK_NONE;
    uint64_t thread = thread_state(finding);
    if (!thread)
        return RING_STACK_NONE;
    struct python_memory *memory = &block->python;
    struct python_walk walk = {.frames = memory->frames[!memory->turn], .codes = memory->codes, .limit = recorder.depth};
    bool proved = __atomic_load_n(&finding->proved, __ATOMIC_RELAXED);
    python_walk(&finding->layout, thread, &walk, !proved);
    if (walk.failed) {
        if (!proved)
            give_up(finding);
        else
            recorder_count(&recorder.header->lost_stacks);
        return RING_STACK_NONE;
    }
    uint32_t node = number_frames(&finding->layout, memory, &walk);
    if (node == RING_STACK_NONE)
        recorder_count(&recorder.header->lost_stacks);
    else if (walk.count && !proved)
        __atomic_store_n(&finding->proved, true, __ATOMIC_RELAXED);
    return node;
}
