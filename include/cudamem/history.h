/*
 * cudamem/history.h: recording what the allocator does, and snapshots of it.
 *
 *     cudamem_record_memory_history(NULL, NULL);           // everything, with stacks
 *     ...
 *     cudamem_dump_snapshot(NULL, NULL);                   // dump_snapshot.pickle, for pytorch.org/memory_viz and cudamem
 *
 * Each device keeps its newest entries in memory that grows as needed up to max_entries and is used again from then on.
 * Stacks are kept once each, native ones by libunwind (loaded when needed; without it there are none), Python's if the
 * process is a Python; names are looked up when a snapshot is looked at or saved.
 *
 * Thread safe; not from a trace tracker (CUDAMEM_ERROR_REENTERED).  Errors as in cudamem/allocator.h.
 */
#ifndef CUDAMEM_HISTORY_H
#define CUDAMEM_HISTORY_H

#include <cudamem/error.h>
#include <cudamem/pool.h>
#include <cudamem/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cudamem_history_enabled {
    CUDAMEM_HISTORY_ALL = 0,   /* allocations and frees as they come, and stacks of what lives */
    CUDAMEM_HISTORY_STATE = 1, /* stacks of what lives, and only the last entry */
    CUDAMEM_HISTORY_NONE = 2,  /* nothing, and what was recorded is forgotten */
};

enum cudamem_history_context { /* where stacks are taken and kept */
    CUDAMEM_CONTEXT_ALL = 0,   /* also of frees and cache flushes */
    CUDAMEM_CONTEXT_ALLOC = 1, /* also in the entries of allocations; those of frees have their allocation's */
    CUDAMEM_CONTEXT_STATE = 2, /* in the blocks that live, not in entries */
    CUDAMEM_CONTEXT_NONE = 3,  /* nowhere */
};

enum cudamem_history_stacks {
    CUDAMEM_STACKS_ALL = 0,    /* native frames and Python's */
    CUDAMEM_STACKS_PYTHON = 1, /* Python's only: none in a program without Python */
};

/* Zero is PyTorch's default everywhere.  Set struct_size to sizeof. */
typedef struct cudamem_history_options {
    size_t struct_size;
    uint64_t max_entries;     /* of each device; 0: as many as there are */
    int32_t enabled;          /* enum cudamem_history_enabled */
    int32_t context;          /* enum cudamem_history_context */
    int32_t stacks;           /* enum cudamem_history_stacks */
    int32_t clear_history;    /* forget what was recorded before */
    int32_t annotations;      /* keep what cudamem_annotation_begin() and _end() say */
    uint32_t skip_actions;    /* these make no entries: sum of 1u << enum cudamem_action */
} cudamem_history_options;

/* Begin, change or end recording, on every device, also those that are used later.  options NULL: all defaults.  Another
 * max_entries keeps the newest entries that fit.  CUDAMEM_ERROR_USAGE: a choice that there is not.  If stacks cannot be
 * taken recording goes on without, and the answer is CUDAMEM_OK with a sentence in error->message.
 * torch.cuda.memory._record_memory_history */
int cudamem_record_memory_history(const cudamem_history_options *options, cudamem_error *error);

/* Options for the switches of PyTorch's older form, by their names and in their order.  device was never heeded, and there is
 * no compiler whose context compile_context could add.  torch.cuda.memory._record_memory_history_legacy */
static inline cudamem_history_options cudamem_history_legacy(int enabled, int record_context,
                                                             uint64_t trace_alloc_max_entries,
                                                             int trace_alloc_record_context, int device,
                                                             int record_context_cpp, int clear_history,
                                                             int compile_context, int global_record_annotations)
{
    cudamem_history_options options;
    (void)device;
    (void)compile_context;
    options.struct_size = sizeof(options);
    options.max_entries = trace_alloc_max_entries ? trace_alloc_max_entries : 1;
    options.enabled = enabled ? CUDAMEM_HISTORY_ALL : CUDAMEM_HISTORY_NONE;
    options.context = trace_alloc_record_context ? CUDAMEM_CONTEXT_ALLOC
                      : record_context           ? CUDAMEM_CONTEXT_STATE
                                                 : CUDAMEM_CONTEXT_NONE;
    options.stacks = record_context_cpp ? CUDAMEM_STACKS_ALL : CUDAMEM_STACKS_PYTHON;
    options.clear_history = clear_history;
    options.annotations = global_record_annotations;
    options.skip_actions = 0;
    return options;
}

/* A part of the program begins or ends here: kept in the snapshot's external_annotations, if annotations are on.  Begin and
 * end are told apart by name; they may nest and overlap.  name is copied.  device -1: the current one. */
int cudamem_annotation_begin(const char *name, int device, cudamem_error *error);
int cudamem_annotation_end(const char *name, int device, cudamem_error *error);

/* --- snapshots ------------------------------------------------------------------------------------------------------ */

typedef struct cudamem_memory_snapshot_options {
    size_t struct_size;
    int64_t pool[2];        /* with has_pool: only this pool's segments, and its entries */
    int32_t has_pool;
    int32_t without_traces; /* no entries: segments and blocks only */
} cudamem_memory_snapshot_options;

/* What there is on every device: segments, blocks, entries, settings, annotations.  options NULL: all of it.  *snapshot is
 * the caller's, for cudamem_snapshot_close().  Before the first use of any device it is empty; of a pool that does not
 * exist, too.  While recording, a `snapshot` entry marks it in the next one.
 * torch.cuda.memory_snapshot, torch.cuda.memory._snapshot */
int cudamem_memory_snapshot(const cudamem_memory_snapshot_options *options, cudamem_snapshot **snapshot,
                            cudamem_error *error);

/* The same of one pool, on every device that it was used on; include_traces 0: without its entries.
 * torch.cuda.MemPool.snapshot */
int cudamem_pool_snapshot(const cudamem_pool *pool, int include_traces, cudamem_snapshot **snapshot,
                          cudamem_error *error);

/* Take one and save it: as snapshot.bin if the name ends in ".bin", else as PyTorch's pickle.  path NULL:
 * "dump_snapshot.pickle".  torch.cuda.memory._dump_snapshot */
int cudamem_dump_snapshot(const char *path, cudamem_error *error);

/* Entries of a device that the ring had no room for: overwritten, or not kept for want of memory; 0 for one that was not
 * used.  Begins anew when the history is cleared. */
int cudamem_history_lost(int device, uint64_t *lost, cudamem_error *error);

#ifdef __cplusplus
}
#endif
#endif
