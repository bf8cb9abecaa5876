/* What ring_build.c, ring_stacks.c, ring_python.c and ring_build_state.c share while a snapshot is made.  Not for others. */
#ifndef FORMAT_RING_BUILDER_H
#define FORMAT_RING_BUILDER_H

#include "base/table.h"
#include "format/ring_reader.h"

struct ring_marks { /* in order */
    struct ring_mark *items;
    size_t count, next;
};

struct ring_ranges { /* that are open while annotations are made */
    void *items;
    size_t count, capacity;
    struct table by_thread, by_number; /* -> the innermost one */
    size_t next;                       /* annotation of the reader */
};

struct build {
    struct ring_reader *reader;
    struct snapshot *snapshot;
    uint32_t *stacks;     /* trie node -> snapshot's, NONE32: not made yet */
    uint32_t *path;       /* nodes of one stack, innermost first */
    struct table frames;  /* module, offset -> frame */
    uint32_t *python_path;
    struct table python_frames; /* code, instruction -> frame */
    struct table merged;  /* native node, Python's node -> stack */
    uint32_t *mixed;      /* frames of one such stack, innermost first */
    struct table pools;   /* handle -> pool */
    struct table parts;   /* thread -> the context of its last event */
    double rate;          /* nanoseconds a tick */
    struct ring_calibration clock; /* where times count from */
    uint32_t *calls;
    struct ring_marks marks;
    struct ring_ranges ranges;
    size_t timed, same_time; /* entries looked at; the first of them with the last one's time */
    uint64_t line_bytes;     /* of Python's line tables that were walked over */
};

/* The snapshot's context of a stack, and its pool of a handle (NONE32: no memory). */
int ring_build_context(struct build *build, uint32_t native, uint32_t python, uint32_t *context);
uint32_t ring_build_pool(struct build *build, uint64_t handle);

/* The reader's modules, which the snapshot has none of yet. */
int ring_build_modules(struct build *build);

int ring_stacks_begin(struct build *build);
void ring_stacks_free(struct build *build);

/* Frames of Python: the snapshot's frame of a node; the nodes of a stack into python_path; the setting that tells whether
 * there are any. */
int ring_python_frame(struct build *build, uint32_t node, uint32_t *frame);
int ring_python_path(struct build *build, uint32_t node, size_t *depth);
int ring_python_setting(struct build *build);

/* Microseconds since the epoch. */
int64_t ring_build_time(const struct build *build, uint64_t ticks);

/* Marks: those before the event, which is built next, or (NULL) all that are left, get their place among the entries. */
int ring_marks_begin(struct build *build);
int ring_marks_until(struct build *build, const struct ring_event *event);
void ring_marks_free(struct build *build);

/* One of either: behind the entries that there are. */
int ring_add_annotation(struct build *build, struct annotation *annotation);

/* The same for what the program named itself. */
int ring_annotations_until(struct build *build, const struct ring_event *event);
int ring_annotations_setting(struct build *build);
void ring_annotations_free(struct build *build);

/* What lives at the end, when the entries are there; and the numbers of the devices where blocks are known. */
int ring_build_state(struct build *build);

#endif
