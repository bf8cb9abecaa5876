/*
 * Inside torch_write: the writer's state, and what its three sources offer one another.
 */
#ifndef FORMAT_TORCH_WRITER_H
#define FORMAT_TORCH_WRITER_H

#include "base/table.h"
#include "format/pickle_write.h"
#include "snapshot/snapshot.h"

enum torch_text {                 /* words beside fields, actions and states */
    TORCH_TEXT_SMALL, TORCH_TEXT_LARGE, TORCH_TEXT_START, TORCH_TEXT_END, TORCH_TEXT_NOT_AVAILABLE, TORCH_TEXT_EMPTY,
    TORCH_TEXT_MAX_ENTRIES, TORCH_TEXT_OVERFLOWED, TORCH_TEXT_COUNT
};

/* A word that is one object wherever it stands. */
struct torch_shared {
    const char *text;
    uint32_t object; /* the file's own object, NONE32 if it had none */
    uint32_t memo;   /* number + 1 of ours */
};

struct torch_writer {
    struct pickle_writer *pickle;
    const struct snapshot *snapshot;
    struct error *err;
    int status;            /* sticky */
    uint32_t *strings, *contexts, *frames; /* memo number + 1, by object */
    struct table objects;  /* words of containers, bytes and rows -> memo number */
    struct table contents; /* keys that have no object of their own: content -> memo number */
    struct torch_shared fields[FIELD_COUNT], actions[ACTION_COUNT], states[BLOCK_STATE_OTHER],
        texts[TORCH_TEXT_COUNT];
    uint32_t empty_frames; /* memo number + 1 of the one empty list of frames of recorded snapshots */
    bool memo_rows;        /* rows may be named again: their dicts are memoized */
    bool has_odd[ROW_KIND_COUNT];
    uint8_t *odd_entries;  /* a bit an entry that has odd values */
    unsigned depth;
};

/* torch_write_value.c */
void torch_write_value(struct torch_writer *writer, value v);
void torch_write_object(struct torch_writer *writer, uint32_t object);
void torch_write_shared(struct torch_writer *writer, struct torch_shared *shared);
void torch_write_key(struct torch_writer *writer, uint32_t key); /* as a shape has it */
void torch_write_content(struct torch_writer *writer, uint32_t content);
void torch_write_fail(struct torch_writer *writer, int status, const char *message);
bool torch_written(struct torch_writer *writer, value word); /* then a reference to it was written */
void torch_remember(struct torch_writer *writer, value word);

/* torch_write_row.c */
void torch_write_row(struct torch_writer *writer, enum row_kind kind, uint64_t row);

/* torch_write_ours.c: rows without a shape, in 2.11's layout */
void torch_write_our_row(struct torch_writer *writer, enum row_kind kind, uint64_t row);
void torch_write_our_entry(struct torch_writer *writer, uint64_t row, enum action action);
unsigned torch_our_actions(const struct torch_writer *writer, uint64_t row, enum action actions[3]);
void torch_write_our_settings(struct torch_writer *writer);
void torch_write_pool(struct torch_writer *writer, uint32_t pool);
void torch_write_blocks(struct torch_writer *writer, const struct segment *segment);
uint32_t torch_trace_of(const struct torch_writer *writer, uint16_t process, uint16_t ordinal);

#endif
