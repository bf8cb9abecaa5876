/*
 * The recorder inside a process: what src/preload calls for each event.
 *
 * recorder_start() reads the settings and resolves everything that must not be looked up later (libunwind by dlopen,
 * the clock, the host name); it makes no file.  The ring file is made by the first event (programs that never touch
 * CUDA leave nothing), also in a forked child, which gets its own.  From then on recorder_event() allocates nothing with
 * malloc, tries its own locks for a bounded time, and asks the loader for nothing but its list of objects, which
 * libunwind does, too, for a frame that is new to it (dl_iterate_phdr, whose lock a thread in dlopen or dlclose holds for
 * moments).  It may run in any thread, in signal handlers, and re-entered (a nested call is counted as dropped).  If the
 * file cannot be made, one line goes to stderr, once, and every later call returns at once.
 *
 * Uses src/base only.  The layout of the file is in ring.h; it is read by src/format/ring_read.c.
 */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_UNKNOWN UINT64_MAX

enum record_action { /* the numbers of enum action in snapshot/snapshot.h; a test compares them */
    RECORD_ALLOC,
    RECORD_FREE_REQUESTED,
    RECORD_FREE_COMPLETED,
    RECORD_SEGMENT_ALLOC,
    RECORD_SEGMENT_FREE,
    RECORD_SEGMENT_MAP,
    RECORD_SEGMENT_UNMAP,
    RECORD_SNAPSHOT,
    RECORD_OOM,
};

enum record_kind { /* the numbers of enum memory_kind in snapshot/snapshot.h; the same test */
    RECORD_PLAIN,
    RECORD_PITCHED,
    RECORD_ARRAY,
    RECORD_MIPMAPPED,
    RECORD_MANAGED,
    RECORD_HOST,
    RECORD_ASYNC,
    RECORD_POOL,
    RECORD_VIRTUAL,
    RECORD_IMPORTED,
    RECORD_GRAPH,
    RECORD_CONTEXT,
    RECORD_MODULE,
};

struct record_event {
    uint8_t action;       /* enum record_action */
    uint8_t kind;         /* enum record_kind */
    uint16_t device;      /* ordinal */
    uint16_t call;        /* index into the table of call names given at start, 0 = not known */
    int32_t result;       /* CUresult: of a failed call for RECORD_OOM; for RECORD_SEGMENT_FREE of a free that failed after it
                             was recorded, a correcting entry that undoes it */
    uint64_t address;     /* for RECORD_OOM: bytes the device still had free, or RECORD_UNKNOWN */
    uint64_t size;        /* RECORD_UNKNOWN for a free: taken from the table of live memory */
    uint64_t requested;   /* what the program asked for, if it differs from size; else RECORD_UNKNOWN */
    uint64_t pool;        /* handle, 0 = none */
    int64_t stream;
    bool stream_unknown;
    bool requested_unknown; /* of a block: nobody told what was asked for */
    bool is_cached;       /* of our own allocator: a segment is cut into blocks, the end of a block's free will be told */
    bool same_call;       /* a part of the call that this thread's event before was of */
    bool unmapped;        /* physical memory that is mapped nowhere: it counts and is live, and is no entry */
    const void *skip;     /* return address of the outermost frame of ours, to leave our own frames out of the stack;
                             NULL keeps all */
};

/* Facts about the process that the file header carries; strings are copied (bounded) when the file is made. */
struct recorder_options {
    const char *output;          /* base name the command will use; may be NULL */
    const char *ring_folder;     /* NULL: chosen (run directory or temporary folder) */
    uint64_t max_entries;        /* a device; 0: 256Ki */
    unsigned depth;              /* frames of each kind at most; 0: none */
    bool native_stacks, python_stacks;
    const char *const *calls;    /* names of driver calls, [0] is ""; static storage */
    size_t call_count;
    unsigned oom_copies;         /* out of memories whose state is kept by a copy of the ring file */
    bool start_paused;
};

/* 0, or -1 with the reason in message (for the one promised line).  With 0 a message says what is left out (no
 * libunwind: no stacks); it is empty if nothing is. */
int recorder_start(const struct recorder_options *options, char *message, size_t message_size);

/* Record one event.  Returns its sequence number (while recording is paused, the last one's), 0 if it was not recorded. */
uint64_t recorder_event(const struct record_event *event);

/* A failure for want of memory was recorded, and the program will learn of it: the first few keep their state. */
void recorder_keep_oom(void);

/* From now on this signal asks for a copy of the ring file, before a handler of the program's.  May be called before
 * recorder_start().  next is what sets actions.  Of that signal the program's own calls of sigaction() go to
 * recorder_sigaction(), which leaves our action in place; it is what sigaction is, also in handlers. */
struct sigaction;
typedef int record_sigaction(int number, const struct sigaction *action, struct sigaction *old);
void recorder_take_signal(int number, record_sigaction *next);
bool recorder_has_signal(int number);
int recorder_sigaction(const struct sigaction *action, struct sigaction *old);

/* The statistics of our own allocator on a device, after what it did was recorded; one caller at a time. */
struct memory_stats;
void recorder_allocator(uint16_t ordinal, const struct memory_stats *stats);

/* Facts learnt later: the device's name, identity and total bytes; the driver's version. */
void recorder_device(uint16_t ordinal, const char *name, const uint8_t uuid[16], uint64_t total_bytes);
void recorder_driver(int version, const char *path);
void recorder_device_free(uint16_t ordinal, uint64_t free_bytes, uint64_t pool_bytes); /* the last values seen: what
                             is free, and what the driver's pools held beyond what they had handed out */

/* Bytes of a device that are known to be taken now, by segments and unmapped memory. */
uint64_t recorder_known(uint16_t ordinal);

/*
 * A range or a moment that the program named.  A pop ends this thread's innermost range of the domain; `range` ties a
 * start to its end, in any thread.  Names are bytes, cut after a thousand; 0 is the default domain.  Makes no file; may be
 * called wherever recorder_event() may.
 */
enum record_annotation { RECORD_RANGE_PUSH, RECORD_RANGE_POP, RECORD_RANGE_START, RECORD_RANGE_END, RECORD_INSTANT };
void recorder_annotate(enum record_annotation what, uint32_t domain, uint64_t range, const char *name, size_t length);

/* What live memory starts at address: false if none that we know.  For wrappers that must know a size before a free. */
bool recorder_find(uint64_t address, uint64_t *size, uint16_t *device);
bool recorder_find_segment(uint64_t address, uint64_t *size, uint16_t *device, uint8_t *kind);

/* The same for an allocator's block. */
bool recorder_find_block(uint64_t address, uint64_t *size, uint16_t *device);

/* A block lies at [address, end).  Of the segments that touch one another from `from` on, those that it lies in are
 * noted as cut into blocks: the ring forgets it. */
void recorder_holds_block(uint64_t from, uint64_t address, uint64_t end);

/* Walk over the segments that are live now; a false answer of each() ends it.  each() must not record. */
void recorder_each_segment(bool (*each)(uint64_t address, uint16_t device, uint8_t kind, void *context), void *context);

/* This thread begins to unload a library, or has: in between it may hold the loader's lock, which threads in the unwinder
 * wait for, so that a signal handler's event there waits for no fork. */
void recorder_unloads(bool begins);

/* A library was unloaded (called by who wraps dlclose, after it): addresses may be reused.  Without it the recorder looks
 * every 10 ms or so.  Cheap, never blocks. */
void recorder_modules_changed(void);

/* A line to stderr by one write, whose failure is nobody's signal. */
void recorder_write(const char *line, size_t length);

/* Normal end of the process (destructor, _exit wrapper): stamps the end time.  Idempotent, async-signal safe. */
void recorder_finish(void);

#endif
