/*
 * Why an allocation has no stack, as far as the file tells: said instead of an empty line.
 *
 * A list without frames that several allocations share is PyTorch's way to say that none was taken; one of its own
 * belongs to a thread in which no frame of the recorded kind runs (backward passes run in threads without Python).
 *
 * Holds a pointer to the snapshot, which must outlive it.  Cost: one pass over the entries if some stack is empty.
 */
#ifndef ANALYZE_NO_STACK_H
#define ANALYZE_NO_STACK_H

#include "base/error.h"
#include "snapshot/snapshot.h"

enum no_stack {
    NO_STACK_RECORDING_OFF, /* the file has no trace at all */
    NO_STACK_BEFORE,        /* allocated before the first entry */
    NO_STACK_OVERWRITTEN,   /* likewise, but entries were lost: its own may be among them */
    NO_STACK_TABLE_FULL,    /* the recorder had no room for more stacks */
    NO_STACK_NOT_TAKEN,     /* stacks were off, or left out for this kind of entry */
    NO_STACK_NO_PYTHON,     /* only Python frames were recorded, and none ran in that thread */
    NO_STACK_NO_FRAMES,     /* a stack was taken and is empty */
    NO_STACK_NOT_USERS,     /* no frame is left once those of the frameworks are */
    NO_STACK_COUNT
};

struct no_stacks {
    const struct snapshot *snapshot;
    uint8_t *allocations; /* context -> how many allocations name it, 2 for more; NULL: no stack is empty */
    bool python_only;     /* every frame is Python's */
};

int no_stacks_open(const struct snapshot *snapshot, struct no_stacks *reasons, struct error *err);
void no_stacks_close(struct no_stacks *reasons);

/* Of an allocation of a process and device that has no frames.  is_before: no entry tells of it. */
enum no_stack no_stack_of(const struct no_stacks *reasons, uint16_t process, uint16_t device, uint32_t context,
                          bool is_before);

/* A stack was taken, and nothing of the recorded kind ran in its thread. */
bool no_stack_is_threads(const struct no_stacks *reasons, uint32_t context);

const char *no_stack_text(enum no_stack reason); /* "(allocated before recording)" */
const char *no_stack_key(enum no_stack reason);  /* for JSON: "before_recording" */

#endif
