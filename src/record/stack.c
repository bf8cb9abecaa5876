/*
 * Native stacks: taken by libunwind's unw_backtrace or walked as it did before (walk.c), remembered a thread by their
 * hash, kept in the file as a trie.
 *
 * libunwind is opened with RTLD_LOCAL: as a normal dependency of a preloaded library it would take over `backtrace`
 * and the unwinding of C++ exceptions of the whole program.  Frames are taken without any lock of ours.
 */
#include "record/internal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define UNWIND_PREFIX "_ULx86_64_"
#define UNWIND_COMMON "_Ux86_64_" /* not local only */
#elif defined(__aarch64__)
#define UNWIND_PREFIX "_ULaarch64_"
#define UNWIND_COMMON "_Uaarch64_"
#else
#define UNWIND_PREFIX "_UL_"
#define UNWIND_COMMON "_U_"
#endif

/* UNW_CACHE_NONE: its other memory is behind a lock that it keeps while it waits for the loader's, even if each thread
 * was to have its own; a signal handler's event in the midst of a dlclose has the two the other way round. */
#define UNWIND_CACHE_NONE 0

static int (*take_frames)(void **frames, int count);
static void (*flush_cache)(void *space, uintptr_t low, uintptr_t high);
static void **unwind_space;
#if defined(__x86_64__)
static void *own_frame; /* what libunwind returns to; the first of its frames */
#endif

static struct trie trie = {.table = RING_NODES, .first = 65536};

/* libunwind keeps a pipe to try addresses with.  It must not get numbers that the program would have got, or that it
 * takes for its own: the low ones are held meanwhile. */
#define DESCRIPTORS 512
struct descriptors {
    uint64_t held[DESCRIPTORS / 64];
};

static void take_descriptors(struct descriptors *taken)
{
    memset(taken, 0, sizeof(*taken));
    for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) {
        if (fd >= DESCRIPTORS) {
            close(fd);
            return;
        }
        taken->held[fd / 64] |= UINT64_C(1) << fd % 64;
    }
}

static void give_descriptors(const struct descriptors *taken)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (taken->held[fd / 64] >> fd % 64 & 1)
            close(fd);
}

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
    void *flush = dlsym(library, UNWIND_COMMON "flush_cache");
    int (*set_policy)(void *space, int policy);
    memcpy(&set_policy, &policy, sizeof(set_policy));
    memcpy(&flush_cache, &flush, sizeof(flush_cache));
    unwind_space = dlsym(library, UNWIND_PREFIX "local_addr_space");
    struct descriptors taken;
    take_descriptors(&taken);
    if (policy && unwind_space && *unwind_space)
        set_policy(*unwind_space, UNWIND_CACHE_NONE);
    void *frames[4];
    unwind_cache_before();
    int count = take_frames(frames, 4); /* what it looks up once, it looks up now */
    unwind_cache_find(frames, count);
    give_descriptors(&taken);
    walk_start(library);
    return 0;
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

/* What libunwind knows of addresses that another library has now goes. */
void stack_refresh_modules(void)
{
    if (modules_refresh() && flush_cache && unwind_space && *unwind_space)
        flush_cache(*unwind_space, 0, 0);
}

static uint32_t intern(void *const *frames, size_t count)
{
    if (!lock_try(&recorder.intern_lock))
        return RING_STACK_NONE;
    stack_refresh_modules();
    uint32_t stack = RING_STACK_EMPTY;
    for (size_t i = count; i-- > 0 && stack != RING_STACK_NONE;) {
        uint64_t pc = (uint64_t)(uintptr_t)frames[i], offset;
        /* A return address may lie just behind the range that made the call. */
        uint32_t module = modules_resolve(pc - 1, &offset);
        stack = trie_find(&trie, &(struct trie_node){stack, module, offset + 1});
    }
    lock_release(&recorder.intern_lock);
    return stack;
}

/* What is remembered of libraries that went would lead astray in others at their place. */
static void forget_unloaded(struct recorder_thread_block *block)
{
    block->unloads = modules_unloads();
    if (flush_cache && unwind_space && *unwind_space)
        flush_cache(*unwind_space, 0, 0);
    unwind_cache_empty();
    walk_forget(&block->walks);
}

/* All frames, our own at first.  A function of its own, with a frame pointer: where its caller is, no table need say. */
static __attribute__((noinline)) size_t take(struct recorder_thread_block *block, size_t limit)
{
    enum walk_end end = WALK_REFUSED;
    size_t count = 0;
#if defined(__x86_64__)
    uintptr_t *frame = __builtin_frame_address(0);
    const struct walk_state from = {frame[1], (uintptr_t)(frame + 2), frame[0]};
    end = walk_frames(&block->walks, &from, block->frames + 1, limit - 1, &count);
    if (__builtin_expect(end == WALK_DONE, 1)) {
        block->frames[0] = __atomic_load_n(&own_frame, __ATOMIC_RELAXED);
        return count + 1;
    }
#endif
    int taken = take_frames(block->frames, (int)limit);
    count = taken < 0 ? 0 : (size_t)taken;
#if defined(__x86_64__)
    if (count > 1) {
        __atomic_store_n(&own_frame, block->frames[0], __ATOMIC_RELAXED);
        if (end == WALK_UNKNOWN)
            walk_learn(&block->walks, &from, block->frames + 1, count - 1, hash_frames(block->frames, count));
    }
#endif
    return count;
}

static uint32_t capture(struct recorder_thread_block *block, const void *skip, uint64_t now)
{
    size_t limit = recorder.depth + RECORDER_OWN_FRAMES, first = 0;
    uint32_t generation = modules_current(now, false);
    if (__builtin_expect(block->unloads != modules_unloads(), 0))
        forget_unloaded(block);
    size_t count = take(block, limit);
    for (size_t i = 0; skip && i < count && i < RECORDER_OWN_FRAMES; i++) {
        if (block->frames[i] == skip) {
            first = i;
            break;
        }
    }
    while (first < count && (uintptr_t)block->frames[first] - recorder.own_start < recorder.own_size)
        first++;
    void *const *frames = block->frames + first;
    count -= first;
    if (count > recorder.depth)
        count = recorder.depth;
    uint64_t hash = hash_frames(frames, count);
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

bool stack_capture(struct recorder_thread_block *block, const void *skip, uint64_t now, uint32_t *native,
                   uint32_t *python)
{
    if (!recorder_begin_capture(block)) {
        recorder_count(&recorder.header->lost_stacks);
        return false;
    }
    if (recorder.stacks)
        *native = capture(block, skip, now);
    bool taken = !recorder.stacks || *native != RING_STACK_NONE;
    if (recorder.python)
        *python = python_capture(block, now);
    recorder_end_capture(block);
    return taken;
}

void stack_forget(void)
{
    trie_forget(&trie);
    python_forget();
    modules_forget();
}
