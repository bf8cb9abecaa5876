/*
 * A copy of the ring file at a moment, made by the process itself: at an out of memory before the call that failed
 * returns, or in the handler of a signal (signal.c).  It stands beside the file, as NAME.oom1.ring, NAME.signal1.ring, ...,
 * and is a ring file that every reader opens.
 *
 * Copied in the order in which readers read a file that is written meanwhile: live memory first, then the header, whose
 * sequence number says which events count, then the rest.  Space that no event has used stays a hole: nobody maps a copy.
 * System calls only.  A copy that cannot be made costs one line and nothing else.
 */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FREEZE_TRIES 50u /* to find header and statistics at rest */

static __thread uint32_t freezing __attribute__((tls_model("initial-exec")));

struct freeze {
    int to;
    const char *map;  /* of the whole file */
    uint64_t size;    /* of it */
    unsigned levels;  /* of live memory that are copied already */
    uint32_t reason;  /* enum ring_copy */
    uint32_t number;
};

static int write_at(const struct freeze *freeze, const void *bytes, uint64_t offset, uint64_t size)
{
    for (uint64_t done = 0; done < size;) {
        ssize_t count = pwrite(freeze->to, (const char *)bytes + done, size - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return -1;
        done += (uint64_t)count;
    }
    return 0;
}

static uint64_t level_size(unsigned level)
{
    return ((uint64_t)RING_LIVE_FIRST << level) * (sizeof(uint64_t) + sizeof(struct ring_live));
}

static int copy_live(struct freeze *freeze)
{
    const struct ring_header *header = recorder.header;
    for (unsigned level = 0; level < RING_LIVE_LEVELS; level++) {
        uint64_t start = __atomic_load_n(&header->live[level], __ATOMIC_ACQUIRE);
        if (!start || start >= freeze->size)
            break;
        if (write_at(freeze, freeze->map + start, start, level_size(level)))
            return -1;
        freeze->levels = level + 1;
    }
    return 0;
}

static uint64_t events_seen(const struct ring_header *header)
{
    return __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE) +
           __atomic_load_n(&header->skipped_paused, __ATOMIC_RELAXED);
}

/* Header, devices and names: statistics agree with the sequence number if no event came meanwhile, or the copy says that
 * they may not. */
static int copy_head(struct freeze *freeze)
{
    const struct ring_header *header = recorder.header;
    bool steady = false;
    for (unsigned i = 0; i < FREEZE_TRIES && !steady; i++) {
        uint64_t before = events_seen(header);
        steady = !__atomic_load_n(&header->lock, __ATOMIC_ACQUIRE);
        if (write_at(freeze, freeze->map, 0, recorder.first_size))
            return -1;
        steady = steady && !__atomic_load_n(&header->lock, __ATOMIC_ACQUIRE) && events_seen(header) == before;
    }
    uint32_t state = (header->state & ~(uint32_t)RING_FINISHED) | (steady ? 0 : RING_STATS_INEXACT), lock = 0;
    uint32_t copy[2] = {freeze->reason, freeze->number};
    static_assert(offsetof(struct ring_header, copy_number) == offsetof(struct ring_header, copy) + sizeof(uint32_t),
                  "written at once");
    return write_at(freeze, &state, offsetof(struct ring_header, state), sizeof(state)) ||
           write_at(freeze, &lock, offsetof(struct ring_header, lock), sizeof(lock)) ||
           write_at(freeze, copy, offsetof(struct ring_header, copy), sizeof(copy));
}

/* A part of the file that is not copied as it stands: how much of it counts. */
struct part {
    uint64_t start, size, used;
};

/* The first such part that begins at or after offset. */
static struct part next_part(const struct freeze *freeze, uint64_t offset)
{
    struct part next = {freeze->size, 0, 0};
    for (unsigned i = 0; i < RING_DEVICES; i++) {
        const struct ring_device *device = &recorder.devices[i];
        uint64_t start = __atomic_load_n(&device->ring, __ATOMIC_ACQUIRE);
        uint64_t head = __atomic_load_n(&device->head, __ATOMIC_RELAXED);
        if (start && start >= offset && start < next.start)
            next = (struct part){start, recorder.slots * sizeof(struct ring_slot),
                                 (head < recorder.slots ? head : recorder.slots) * sizeof(struct ring_slot)};
    }
    for (unsigned i = 0; i < freeze->levels; i++)
        if (recorder.header->live[i] >= offset && recorder.header->live[i] < next.start)
            next = (struct part){recorder.header->live[i], level_size(i), 0};
    return next;
}

static int copy_rest(const struct freeze *freeze)
{
    uint64_t at = recorder.first_size;
    while (at < freeze->size) {
        struct part part = next_part(freeze, at);
        if (write_at(freeze, freeze->map + at, at, part.start - at) ||
            write_at(freeze, freeze->map + part.start, part.start, part.used))
            return -1;
        at = part.start + part.size;
    }
    return 0;
}

/* The kernel would send SIGXFSZ to one who writes beyond the limit. */
static bool is_within_limit(uint64_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

/* All of the file as it is now, for the kernel to read: one that shrank is an error then, no signal. */
static int map_file(struct freeze *freeze, int from)
{
    uint64_t size = __atomic_load_n(&recorder.header->file_size, __ATOMIC_ACQUIRE);
    if (freeze->map && size == freeze->size)
        return 0;
    if (freeze->map)
        munmap((void *)freeze->map, freeze->size);
    void *map = is_within_limit(size) ? mmap(NULL, size, PROT_READ, MAP_SHARED, from, 0) : MAP_FAILED;
    freeze->map = map == MAP_FAILED ? NULL : map;
    freeze->size = size;
    return freeze->map ? 0 : -1;
}

/* After its header the copy has at least the size that the header says. */
static int copy_all(struct freeze *freeze, int from)
{
    int failed = map_file(freeze, from) || copy_live(freeze) || copy_head(freeze) || map_file(freeze, from) ||
                 ftruncate(freeze->to, (off_t)freeze->size) || copy_rest(freeze);
    int error = errno;
    if (freeze->map)
        munmap((void *)freeze->map, freeze->size);
    errno = error;
    return failed ? -1 : 0;
}

static char *add_text(char *to, const char *text)
{
    while ((*to = *text++))
        to++;
    return to;
}

static char *add_number(char *to, uint32_t number)
{
    char digits[10];
    unsigned count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *to++ = digits[--count];
    *to = 0;
    return to;
}

/* The copy's names, while it is made and when it is whole.  Under the lock, so that they need no room on the stack of a
 * signal. */
static char copy_path[sizeof(recorder.path) + 32], copy_unfinished[sizeof(recorder.path) + 32];

static void name_copy(const struct freeze *freeze)
{
    size_t stem = strlen(recorder.path) - strlen(RING_SUFFIX);
    memcpy(copy_path, recorder.path, stem);
    char *end = add_text(copy_path + stem, freeze->reason == RING_COPY_OOM ? RING_COPY_OOM_WORD : RING_COPY_SIGNAL_WORD);
    add_text(add_number(end, freeze->number), RING_SUFFIX);
    add_text(add_text(copy_unfinished, copy_path), RING_UNFINISHED);
}

static int make_copy(struct freeze *freeze)
{
    int from = ring_file_reopen();
    if (from < 0)
        return -1;
    name_copy(freeze);
    freeze->to = open(copy_unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = freeze->to < 0, error = errno;
    if (!failed) {
        fchmod(freeze->to, 0600); /* whatever the umask took away */
        failed = copy_all(freeze, from);
        error = errno;
        close(freeze->to);
        if (!failed && rename(copy_unfinished, copy_path)) {
            failed = -1;
            error = errno;
        }
        if (failed)
            unlink(copy_unfinished);
    }
    close(from);
    errno = error;
    return failed ? -1 : 0;
}

static void say_failed(int error)
{
    static uint32_t said;
    static const char what[] = "cudamem: the state of this moment cannot be kept: ";
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        return;
    const char *reason = strerrordesc_np(error);
    char line[sizeof(what) + 100];
    char *end = add_text(line, what);
    end = add_text(end, reason && strlen(reason) < 90 ? reason : "unknown error");
    end = add_text(end, "\n");
    recorder_write(line, (size_t)(end - line));
}

/* A child that shares its parent's memory has no file of its own. */
static bool has_file(void)
{
    return recorder.state && recorder_state() == RECORDER_READY && recorder.header->pid == getpid();
}

void recorder_keep_oom(void)
{
    recorder_freeze(RING_COPY_OOM);
}

void recorder_freeze(uint32_t reason)
{
    uint32_t *count = &recorder.copies[reason];
    if (!has_file() || (reason == RING_COPY_OOM && __atomic_load_n(count, __ATOMIC_RELAXED) >= recorder.oom_copies) ||
        freezing)
        return; /* a signal during a copy: the one that is made is as good */
    int error = errno, cancel = cancel_off();
    freezing = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (lock_try(&recorder.freeze_lock)) {
        struct freeze freeze = {.to = -1, .reason = reason, .number = ++*count};
        bool wanted = reason != RING_COPY_OOM || freeze.number <= recorder.oom_copies;
        if (wanted && make_copy(&freeze))
            say_failed(errno);
        lock_release(&recorder.freeze_lock);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    freezing = 0;
    cancel_as(cancel);
    errno = error;
}
