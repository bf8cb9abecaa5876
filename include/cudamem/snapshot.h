/*
 * cudamem/snapshot.h: snapshots of GPU memory: open, look, save.
 *
 * A snapshot holds trace entries (what happened), segments (memory taken from the driver) and blocks (pieces of
 * segments).  Any file that the cudamem command opens opens here: snapshot.bin, PyTorch's snapshot.pickle, a ring file.
 *
 * Thread safety: different snapshots may be used from different threads at once; one snapshot may be read from any
 * number of threads, but not while another closes it.
 */
#ifndef CUDAMEM_SNAPSHOT_H
#define CUDAMEM_SNAPSHOT_H

#include <cudamem/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudamem_snapshot cudamem_snapshot;

/* Options of cudamem_snapshot_open(); set struct_size to sizeof, zero means the default. */
typedef struct cudamem_open_options {
    size_t struct_size;
    uint64_t max_input;   /* decoded bytes at most; 0: what the machine has free */
    int32_t skip_entries; /* non-zero: do not keep the trace, only segments and blocks */
    int32_t reserved;
} cudamem_open_options;

/* Actions of trace entries, with PyTorch's words. */
enum cudamem_action {
    CUDAMEM_ACTION_ALLOC = 0,
    CUDAMEM_ACTION_FREE_REQUESTED = 1,
    CUDAMEM_ACTION_FREE_COMPLETED = 2,
    CUDAMEM_ACTION_SEGMENT_ALLOC = 3,
    CUDAMEM_ACTION_SEGMENT_FREE = 4,
    CUDAMEM_ACTION_SEGMENT_MAP = 5,
    CUDAMEM_ACTION_SEGMENT_UNMAP = 6,
    CUDAMEM_ACTION_SNAPSHOT = 7,
    CUDAMEM_ACTION_OOM = 8,
    CUDAMEM_ACTION_OTHER = 9, /* a word that this version does not know */
};

typedef struct cudamem_entry {
    size_t struct_size;
    int32_t action;    /* enum cudamem_action */
    int32_t device;    /* ordinal */
    int32_t process;   /* 0 unless files were merged */
    uint32_t context;  /* which captured stack; UINT32_MAX: none was taken */
    int64_t stream;    /* CUDA's stream handle */
    uint64_t address;  /* for an oom entry: bytes that the device had free */
    uint64_t size;     /* bytes; requested ones for alloc and free */
    int64_t time_us;   /* microseconds since the epoch, 0 where not known */
} cudamem_entry;

typedef struct cudamem_segment {
    size_t struct_size;
    int32_t device, process;
    uint64_t address, total_size, allocated_size, active_size, requested_size; /* bytes */
    int64_t stream;
    uint32_t context;
    int32_t is_large, is_expandable;
    uint32_t first_block, block_count; /* for cudamem_snapshot_block() */
} cudamem_segment;

typedef struct cudamem_block {
    size_t struct_size;
    uint64_t address, size, requested_size; /* bytes */
    uint32_t context;
    int32_t state; /* 0 inactive, 1 allocated, 2 waiting to be freed */
} cudamem_block;

typedef struct cudamem_frame {
    size_t struct_size;
    const char *name, *filename; /* "" where not known; owned by the snapshot */
    int64_t line;                /* 0 where not known */
} cudamem_frame;

/* Open a snapshot file ("-" is standard input).  options and error may be NULL.  On success *snapshot is the caller's,
 * to be given to cudamem_snapshot_close(); on failure it is NULL. */
int cudamem_snapshot_open(const char *path, const cudamem_open_options *options, cudamem_snapshot **snapshot,
                          cudamem_error *error);

/* Free it; NULL is fine. */
void cudamem_snapshot_close(cudamem_snapshot *snapshot);

/* Write it: format is "bin", "pickle" (torch.cuda.memory._dump_snapshot's layout), "json" or "csv".  The file appears
 * whole or not at all. */
int cudamem_snapshot_save(const cudamem_snapshot *snapshot, const char *path, const char *format,
                          cudamem_error *error);

size_t cudamem_snapshot_entry_count(const cudamem_snapshot *snapshot);
size_t cudamem_snapshot_segment_count(const cudamem_snapshot *snapshot);
size_t cudamem_snapshot_block_count(const cudamem_snapshot *snapshot);

/* Copy out one row; set struct_size first.  CUDAMEM_ERROR_NOT_FOUND beyond the end. */
int cudamem_snapshot_entry(const cudamem_snapshot *snapshot, size_t index, cudamem_entry *entry);
int cudamem_snapshot_segment(const cudamem_snapshot *snapshot, size_t index, cudamem_segment *segment);
int cudamem_snapshot_block(const cudamem_snapshot *snapshot, size_t index, cudamem_block *block);

/* The frames of a context, innermost first: up to `capacity` of them into frames (struct_size set in each).  Returns how
 * many the stack has, 0 for none. */
size_t cudamem_snapshot_stack(const cudamem_snapshot *snapshot, uint32_t context, cudamem_frame *frames,
                              size_t capacity);

/* PyTorch's word for an action ("alloc", ...), "other" if there is none.  Static storage. */
const char *cudamem_action_name(int action);

#ifdef __cplusplus
}
#endif
#endif
