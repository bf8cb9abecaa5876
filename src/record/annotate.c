/*
 * Ranges and moments that the program named, in a ring of their own.  Names are interned in the strings table.
 *
 * Ranges may open before there is a file, and live on in a forked child, which has another: what is open is kept beside,
 * cut short, and told when the thread, or the process, enters a file.  The rules of an event hold here, too: no malloc,
 * no waiting for what the thread holds itself; a call inside an event is counted as lost.
 */
#include "record/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define OPEN_DEPTH 16u          /* of a thread; deeper ones are told only where there is a file when they open */
#define OPEN_RANGES 64u         /* of the process */
#define OPEN_NAME 46u
#define NAME_LONGEST 1024u
#define NAME_SLOTS (1u << 16)   /* names that are known again, a power of two */
#define NAME_FILL (NAME_SLOTS / 4 * 3)
#define NAME_BYTES (UINT64_C(64) << 20) /* of names in all */

struct open_range {
    uint64_t ticks, range;
    uint32_t domain;
    uint16_t length;
    char name[OPEN_NAME];
};

static __thread struct {
    uint32_t generation; /* of the file that was told of them */
    uint32_t depth;      /* may be more than are kept */
    uint32_t untold;     /* of those, the outer ones that this file never heard of */
    struct open_range ranges[OPEN_DEPTH];
} opened __attribute__((tls_model("initial-exec")));

static struct {
    uint32_t lock, generation, count; /* count: places that were ever used */
    struct open_range ranges[OPEN_RANGES]; /* range 0: free */
} process_ranges;

struct name {
    uint64_t hash; /* 0: free */
    uint64_t offset;
};
static struct name *names;   /* under the intern lock, as are these */
static uint32_t names_generation, names_count;
static uint64_t names_bytes;

/* --- names -------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *name, uint32_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ length;
    for (uint32_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

static bool is_name(uint64_t offset, const char *name, uint32_t length)
{
    uint64_t count = recorder.header->tables[RING_STRINGS].count;
    if (offset > count || length > count - offset)
        return false;
    for (uint32_t i = 0; i < length; i++) {
        const char *at = ring_table_at(RING_STRINGS, offset + i);
        if (!at || *at != name[i])
            return false;
    }
    return true;
}

/* Emptied for a new file, and when it is full: then names are written once more. */
static bool names_ready(void)
{
    size_t size = NAME_SLOTS * sizeof(*names);
    if (!names) {
        void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED)
            return false;
        names = map;
    } else if (names_generation != recorder.generation || names_count >= NAME_FILL) {
        memset(names, 0, size);
        names_count = 0;
    }
    if (names_generation != recorder.generation)
        names_bytes = 0;
    names_generation = recorder.generation;
    return true;
}

static bool intern(const char *name, uint32_t length, uint64_t *offset)
{
    bool found = false;
    *offset = 0;
    if (!length)
        return true;
    uint64_t hash = hash_of(name, length);
    if (!lock_try(&recorder.intern_lock))
        return false;
    if (names_ready()) {
        size_t slot = hash & (NAME_SLOTS - 1);
        while (names[slot].hash && !(names[slot].hash == hash && is_name(names[slot].offset, name, length)))
            slot = (slot + 1) & (NAME_SLOTS - 1);
        found = names[slot].hash != 0;
        int64_t added = found || names_bytes + length > NAME_BYTES ? -1 : ring_table_add(RING_STRINGS, name, length);
        if (added >= 0) {
            names[slot] = (struct name){hash, (uint64_t)added};
            names_count++;
            names_bytes += length;
            found = true;
        }
        *offset = names[slot].offset;
    }
    lock_release(&recorder.intern_lock);
    return found;
}

/* --- the ring ----------------------------------------------------------------------------------------------------- */

static __attribute__((cold, noinline)) struct ring_annotation *open_ring(void)
{
    struct ring_annotation *ring = NULL;
    if (!lock_try(&recorder.intern_lock))
        return NULL;
    if (!(ring = recorder.annotations)) {
        uint64_t offset = 0;
        ring = ring_file_append(RING_ANNOTATIONS * sizeof(*ring), &offset);
        if (ring) {
            __atomic_store_n(&recorder.header->annotations, offset, __ATOMIC_RELEASE);
            __atomic_store_n(&recorder.annotations, ring, __ATOMIC_RELEASE);
        }
    }
    lock_release(&recorder.intern_lock);
    return ring;
}

static void lost(void)
{
    if (recorder_state() == RECORDER_READY)
        recorder_count(&recorder.header->lost_annotations);
}

/* A slot that a stalled writer still holds is left alone. */
static void write_annotation(enum ring_annotation_stage stage, const struct open_range *range, const char *name,
                             uint32_t length, uint64_t event)
{
    uint64_t offset;
    struct ring_annotation *ring = __atomic_load_n(&recorder.annotations, __ATOMIC_ACQUIRE);
    if ((!ring && !(ring = open_ring())) || !intern(name, length, &offset)) {
        lost();
        return;
    }
    uint64_t number = __atomic_fetch_add(&recorder.header->annotation_head, 1, __ATOMIC_RELAXED) + 1;
    struct ring_annotation *slot = &ring[(number - 1) & (RING_ANNOTATIONS - 1)];
    uint64_t before = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);
    if ((before & RING_BUSY) ||
        !__atomic_compare_exchange_n(&slot->sequence, &before, number | RING_BUSY, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        lost();
        return;
    }
#ifndef __SANITIZE_THREAD__
    __atomic_thread_fence(__ATOMIC_RELEASE); /* the busy mark is seen before what follows */
#endif
    slot->event = event;
    slot->ticks = range->ticks;
    slot->name = offset;
    slot->range = range->range;
    slot->name_length = length;
    slot->thread = stage == RING_RANGE_START || stage == RING_RANGE_END ? 0 : recorder_self.number;
    slot->stage = stage;
    slot->domain = range->domain;
    __atomic_store_n(&slot->sequence, number, __ATOMIC_RELEASE);
}

/* --- what is open ------------------------------------------------------------------------------------------------- */

static void keep(struct open_range *range, const struct open_range *like, const char *name, uint32_t length)
{
    *range = *like;
    range->length = (uint16_t)(length < OPEN_NAME ? length : OPEN_NAME);
    memcpy(range->name, name, range->length);
}

/* Ranges of the whole process that were open before the file; the first thread that comes by tells of them. */
static void tell_process_ranges(void)
{
    if (__atomic_load_n(&process_ranges.generation, __ATOMIC_ACQUIRE) == recorder.generation ||
        !lock_try(&process_ranges.lock))
        return;
    if (process_ranges.generation != recorder.generation) {
        for (uint32_t i = 0; i < process_ranges.count; i++)
            if (process_ranges.ranges[i].range)
                write_annotation(RING_RANGE_START, &process_ranges.ranges[i], process_ranges.ranges[i].name,
                                 process_ranges.ranges[i].length, 0);
        __atomic_store_n(&process_ranges.generation, recorder.generation, __ATOMIC_RELEASE);
    }
    lock_release(&process_ranges.lock);
}

void annotate_forget_holder(void)
{
    lock_release(&process_ranges.lock);
}

/* Before the thread's first event in a file, or its first annotation. */
void annotate_enter_thread(void)
{
    tell_process_ranges();
    if (opened.generation == recorder.generation)
        return;
    opened.generation = recorder.generation;
    opened.untold = opened.depth > OPEN_DEPTH ? opened.depth - OPEN_DEPTH : 0;
    for (uint32_t i = 0; i < opened.depth && i < OPEN_DEPTH; i++)
        write_annotation(RING_RANGE_PUSH, &opened.ranges[i], opened.ranges[i].name, opened.ranges[i].length, 0);
}

/* Whether it was open and the file knows of it; of what is deeper than is kept nobody knows the domain. */
static bool close_range(uint32_t domain)
{
    if (opened.depth > OPEN_DEPTH) {
        bool told = opened.depth - OPEN_DEPTH > opened.untold;
        opened.untold -= !told;
        opened.depth--;
        return told;
    }
    for (uint32_t i = opened.depth; i-- > 0;) {
        if (opened.ranges[i].domain != domain)
            continue;
        memmove(&opened.ranges[i], &opened.ranges[i + 1], (opened.depth - i - 1) * sizeof(opened.ranges[0]));
        opened.depth--;
        return true;
    }
    return false;
}

static void start_range(const struct open_range *like, const char *name, uint32_t length)
{
    if (!lock_try(&process_ranges.lock))
        return;
    for (uint32_t i = 0; i < OPEN_RANGES; i++) {
        if (process_ranges.ranges[i].range)
            continue;
        keep(&process_ranges.ranges[i], like, name, length);
        if (i >= process_ranges.count)
            __atomic_store_n(&process_ranges.count, i + 1, __ATOMIC_RELAXED);
        break;
    }
    lock_release(&process_ranges.lock);
}

static void end_range(uint64_t range)
{
    if (!lock_try(&process_ranges.lock))
        return;
    for (uint32_t i = 0; i < process_ranges.count; i++)
        if (process_ranges.ranges[i].range == range)
            process_ranges.ranges[i].range = 0;
    lock_release(&process_ranges.lock);
}

/* Whether there is anything to tell of, after it was kept. */
static bool follow(enum ring_annotation_stage stage, const struct open_range *range, const char *name, uint32_t length)
{
    switch (stage) {
    case RING_RANGE_PUSH:
        if (opened.depth < OPEN_DEPTH)
            keep(&opened.ranges[opened.depth], range, name, length);
        opened.depth++;
        return true;
    case RING_RANGE_POP:
        return close_range(range->domain);
    case RING_RANGE_START:
        start_range(range, name, length);
        return true;
    case RING_RANGE_END:
        end_range(range->range);
        return true;
    default:
        return true;
    }
}

/* With a file: what is open gets there before this; a range that opens now is told as it is, not cut short. */
static void tell(enum ring_annotation_stage stage, const struct open_range *range, const char *name, uint32_t length)
{
    if (recorder_self.generation != recorder.generation)
        recorder_enter_thread();
    annotate_enter_thread();
    uint64_t event = __atomic_load_n(&recorder.header->sequence, __ATOMIC_RELAXED);
    if (follow(stage, range, name, length))
        write_annotation(stage, range, name, length, event);
}

void recorder_annotate(enum record_annotation what, uint32_t domain, uint64_t range, const char *name, size_t length)
{
    static const enum ring_annotation_stage stages[] = {
        [RECORD_RANGE_PUSH] = RING_RANGE_PUSH, [RECORD_RANGE_POP] = RING_RANGE_POP,
        [RECORD_RANGE_START] = RING_RANGE_START, [RECORD_RANGE_END] = RING_RANGE_END, [RECORD_INSTANT] = RING_INSTANT};
    if (!recorder.state || recorder_state() == RECORDER_OFF)
        return;
    if (recorder_self.inside) {
        lost();
        return;
    }
    int error = errno;
    recorder_self.inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct open_range open = {.ticks = ticks_now(), .range = range, .domain = domain};
    uint32_t kept = (uint32_t)(length < NAME_LONGEST ? length : NAME_LONGEST);
    if (recorder_state() == RECORDER_READY)
        tell(stages[what], &open, name, kept);
    else
        follow(stages[what], &open, name, kept);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    recorder_self.inside = 0;
    errno = error;
}
