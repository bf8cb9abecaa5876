/*
 * Native stacks: taken by libunwind's unw_backtrace, remembered a thread by their hash, kept in the file as a trie.
 *
 * libunwind is opened with RTLD_LOCAL: as a normal dependency of a preloaded library it would take over `backtrace`
 * and the unwinding of C++ exceptions of the whole program.  Frames are taken without any lock of ours.
 */
#include "record/internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define UNWIND_PREFIX "_ULx86_64_"
#elif defined(__aarch64__)
#define UNWIND_PREFIX "_ULaarch64_"
#else
#define UNWIND_PREFIX "_UL_"
#endif

#define UNWIND_CACHE_PER_THREAD 2 /* UNW_CACHE_PER_THREAD */

static int (*take_frames)(void **frames, int count);
static void (*flush_cache)(void *space, uintptr_t low, uintptr_t high);
static void **unwind_space;

static struct {
    uint32_t *slots; /* node numbers, 0 free: an open-addressed index of the trie */
    size_t capacity; /* a power of two */
} trie;

int stack_start(char *message, size_t message_size)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libunwind.so", RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, "unw_backtrace") : NULL;
    if (!function) {
        snprintf(message, message_size, "no stacks are recorded: libunwind (libunwind8) is not installed");
        return -1;
    }
    memcpy(&take_frames, &function, sizeof(take_frames)); /* an object pointer becomes a function's */
    void *policy = dlsym(library, UNWIND_PREFIX "set_caching_policy");
    void *flush = dlsym(library, UNWIND_PREFIX "flush_cache");
    int (*set_policy)(void *space, int policy);
    memcpy(&set_policy, &policy, sizeof(set_policy));
    memcpy(&flush_cache, &flush, sizeof(flush_cache));
    unwind_space = dlsym(library, UNWIND_PREFIX "local_addr_space");
    if (policy && unwind_space && *unwind_space)
        set_policy(*unwind_space, UNWIND_CACHE_PER_THREAD);
    void *frames[4];
    take_frames(frames, 4); /* what it looks up once, it looks up now */
    return 0;
}

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (b ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* 64 bits are compared instead of the frames: two frames a multiplication, two independent chains, because one chain
 * would cost more than the table it guards. */
static uint64_t hash_frames(void *const *frames, size_t count)
{
    const uintptr_t *pc = (const uintptr_t *)frames;
    uint64_t a = count, b = ~(uint64_t)count;
    for (; count >= 4; count -= 4, pc += 4) {
        a = fold(pc[0] ^ a, pc[1]);
        b = fold(pc[2] ^ b, pc[3]);
    }
    for (; count > 0; count--, pc++)
        a = fold(*pc ^ a, b);
    return fold(a, b);
}

static bool grow_index(void)
{
    size_t capacity = trie.capacity ? trie.capacity * 2 : 65536;
    uint32_t *slots = mmap(NULL, capacity * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return false;
    uint64_t count = recorder.header->tables[RING_NODES].count;
    for (uint64_t i = 0; i < count; i++) {
        const struct ring_node *node = ring_table_at(RING_NODES, i);
        uint64_t h = fold(node->parent | (uint64_t)node->module << 32, node->offset);
        while (slots[h & (capacity - 1)])
            h++;
        slots[h & (capacity - 1)] = (uint32_t)i + RING_STACK_FIRST;
    }
    if (trie.slots)
        munmap(trie.slots, trie.capacity * sizeof(*slots));
    trie.slots = slots;
    trie.capacity = capacity;
    return true;
}

/* The node of a frame called from `parent`; RING_STACK_NONE: no room. */
static uint32_t find_node(uint32_t parent, uint32_t module, uint64_t offset)
{
    struct ring_table *table = &recorder.header->tables[RING_NODES];
    if (table->count >= trie.capacity / 2 && !grow_index())
        return RING_STACK_NONE;
    uint64_t h = fold(parent | (uint64_t)module << 32, offset);
    for (;; h++) {
        uint32_t *slot = &trie.slots[h & (trie.capacity - 1)];
        if (!*slot) {
            struct ring_node node = {parent, module, offset};
            int64_t index = table->count < recorder.max_nodes ? ring_table_add(RING_NODES, &node, 1) : -1;
            if (index < 0)
                return RING_STACK_NONE;
            return *slot = (uint32_t)index + RING_STACK_FIRST;
        }
        const struct ring_node *node = ring_table_at(RING_NODES, *slot - RING_STACK_FIRST);
        if (node->parent == parent && node->module == module && node->offset == offset)
            return *slot;
    }
}

static uint32_t intern(void *const *frames, size_t count)
{
    if (!lock_try(&recorder.intern_lock))
        return RING_STACK_NONE;
    if (modules_refresh() && flush_cache && unwind_space && *unwind_space)
        flush_cache(*unwind_space, 0, 0); /* what it knows of addresses that another library has now */
    uint32_t stack = RING_STACK_EMPTY;
    for (size_t i = count; i-- > 0 && stack != RING_STACK_NONE;) {
        uint64_t pc = (uint64_t)(uintptr_t)frames[i], offset;
        /* A return address may lie just behind the range that made the call. */
        uint32_t module = modules_resolve(pc - 1, &offset);
        stack = find_node(stack, module, offset + 1);
    }
    lock_release(&recorder.intern_lock);
    return stack;
}

static uint32_t capture(struct recorder_thread_block *block, const void *skip, uint64_t now)
{
    size_t limit = recorder.depth + RECORDER_OWN_FRAMES, first = 0;
    int taken = take_frames(block->frames, (int)limit);
    size_t count = taken < 0 ? 0 : (size_t)taken;
    for (size_t i = 0; skip && i < count && i < RECORDER_OWN_FRAMES; i++) {
        if (block->frames[i] == skip) {
            first = i;
            break;
        }
    }
    void *const *frames = block->frames + first;
    count -= first;
    if (count > recorder.depth)
        count = recorder.depth;
    uint64_t hash = hash_frames(frames, count);
    uint32_t generation = modules_current(now, false);
    struct recorder_cached_stack *cached = &block->stacks[hash & (RECORDER_STACK_CACHE - 1)];
    if (cached->hash == hash && cached->modules == generation && cached->stack != RING_STACK_NONE)
        return cached->stack;
    generation = modules_current(now, true);
    uint32_t stack = intern(frames, count);
    if (stack == RING_STACK_NONE)
        recorder_count(&recorder.header->lost_stacks);
    *cached = (struct recorder_cached_stack){hash, stack, generation};
    return stack;
}

uint32_t stack_capture(struct recorder_thread_block *block, const void *skip, uint64_t now)
{
    if (!recorder_begin_capture(block)) {
        recorder_count(&recorder.header->lost_stacks);
        return RING_STACK_NONE;
    }
    uint32_t stack = capture(block, skip, now);
    recorder_end_capture(block);
    return stack;
}

void stack_forget(void)
{
    if (trie.slots)
        munmap(trie.slots, trie.capacity * sizeof(*trie.slots));
    trie.slots = NULL;
    trie.capacity = 0;
    modules_forget();
}
