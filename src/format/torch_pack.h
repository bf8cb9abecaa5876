/*
 * Inside torch_read: turning dicts of the pickle machine into rows of the snapshot.
 *
 * A dict is *exact* if the columns can give it back: all keys are distinct strings, and nothing else in the file names
 * the dict.  Exact dicts are released once packed; others stay as objects, and the file keeps its object graph (`raw`).
 * Functions return 0, TORCH_INEXACT where that matters, or a negative status.
 */
#ifndef FORMAT_TORCH_PACK_H
#define FORMAT_TORCH_PACK_H

#include "format/pickle_machine.h"
#include "format/torch_read.h"

enum { TORCH_INEXACT = 1, TORCH_SHAPE_CACHE = 64, TORCH_SLOTS = 12, TORCH_FRAMES = 512 };
enum { TORCH_RUNS = 16384, TORCH_RUN_BYTES = 4 * 1024 * 1024 };
enum { TORCH_ENTRY_BYTES = 46, TORCH_ODD_SLOT = 39 }; /* of an entry in its columns; of an odd value in its table */
enum { TORCH_DEVICES = 1024 }; /* lists in device_traces at most */

/* The words that the file's own strings are compared with, interned first: their contents are consecutive numbers. */
enum torch_word {
    TORCH_WORD_FIELDS = 0,
    TORCH_WORD_ACTIONS = TORCH_WORD_FIELDS + FIELD_COUNT,
    TORCH_WORD_STATES = TORCH_WORD_ACTIONS + ACTION_OTHER,
    TORCH_WORD_AWAITING = TORCH_WORD_STATES + BLOCK_STATE_OTHER,
    TORCH_WORD_SMALL,
    TORCH_WORD_LARGE,
    TORCH_WORD_START,
    TORCH_WORD_END,
    TORCH_WORD_REAL_SIZE,
    TORCH_WORD_MAX_ENTRIES,
    TORCH_WORD_OVERFLOWED,
    TORCH_WORD_COUNT
};

/* A list whose dicts become rows as they are appended. */
struct torch_stream {
    value list;
    uint8_t kind;     /* enum row_kind */
    bool generic;     /* the list holds words, because some item is no row in sequence */
    bool placed;      /* found where it belongs when the file ended */
    uint16_t device;
    uint64_t first, count;
};

/* The bytes by which a pickle names the frames of a stack, and the stack. */
struct torch_run {
    uint64_t hash;
    uint32_t offset, length; /* in run_bytes */
    uint32_t stack;
};

struct torch_reader {
    struct pickle *pickle; 
    struct snapshot *snapshot;
    struct values *values;
    struct torch_read_options options;
    uint32_t first_word;   /* content of word 0 */
    bool weird;            /* raw is needed */

    struct torch_stream *streams;
    size_t stream_count, stream_capacity;
    struct table promoted; /* a pool tuple or list of blocks that was packed and named again: local row -> container */

    uint32_t *keys;        /* of the dict being packed */
    size_t key_count, key_capacity;
    uint32_t *strange_keys; /* of the top dict, where it has no shape */
    uint32_t last_shape[ROW_KIND_COUNT];

    uint64_t copied;       /* bytes of the columns that stand for dicts which several places name, or may name */
    uint64_t expanded;     /* the same, and what else had to be gone through once more */

    int64_t last_stream;
    uint32_t last_stream_index; /* NONE32: none yet */
    int64_t last_pool[2];
    uint32_t last_pool_index;

    /* the fast path: what the previous entry had in each slot, shapes by their fields, stacks by their bytes */
    uint32_t slot_memo[TORCH_SLOTS];
    uint8_t slot_field[TORCH_SLOTS];
    uint64_t shape_fields[TORCH_SHAPE_CACHE];
    uint16_t shape_number[TORCH_SHAPE_CACHE];
    struct torch_run runs[TORCH_RUNS];
    unsigned char *run_bytes;
    size_t run_used;
    uint32_t frames[TORCH_FRAMES];
};

/* One dict on its way into a row. */
struct torch_dict {
    value word;
    value *items; /* key, value, key, value ... */
    uint32_t count;
    const uint32_t *keys; /* of its shape: enum field, or FIELD_COUNT + content */
    uint16_t shape;
    uint8_t kind;
    bool keep; /* the dict stays an object: nothing in it may be given back */
    uint64_t row;
};

/* torch_pack.c */
int torch_words(struct torch_reader *reader, struct error *err);
int torch_open_dict(struct torch_reader *reader, value dict, enum row_kind kind, struct torch_dict *result,
                    struct error *err);
int torch_close_dict(struct torch_reader *reader, const struct torch_dict *dict, struct error *err);
int torch_odd(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, struct error *err);
int torch_word_of(const struct torch_reader *reader, value v); /* enum torch_word, or -1 */
void torch_share_string(struct torch_reader *reader, value v);
int torch_unsigned(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint64_t *number,
                   bool *is_bad, struct error *err);
int torch_signed(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, int64_t *number,
                 bool *is_bad, struct error *err);
int torch_string(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint32_t *object,
                 struct error *err);
int torch_context_of(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint32_t *context,
                     struct error *err);
int torch_pool_of(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint32_t *pool,
                  struct error *err);
int torch_context(struct torch_reader *reader, value list, value *row, struct error *err);
bool torch_is_exact(const struct torch_reader *reader, value dict);
int torch_set_odd(struct torch_reader *reader, enum row_kind kind, uint64_t row, uint16_t slot, value word, bool is_copy);
value torch_resolve(struct torch_reader *reader, value v); /* without the reader's own row kinds; VALUE_MARK: no memory */

/* torch_rows.c: *row is where it went; TORCH_INEXACT: the dict stays as it is, the columns are filled nevertheless. */
int torch_pack_row(struct torch_reader *reader, enum row_kind kind, value dict, uint16_t device, uint64_t *row,
                   struct error *err);
int torch_entries_room(struct torch_reader *reader, struct error *err);

/* torch_fast.c */
int torch_fast_entries(struct torch_reader *reader, struct torch_stream *stream, struct error *err);

/* torch_graph.c.  torch_unpack: *word is a container as Python sees it again; a new one, for the caller to release, where
 * the object lives in the columns.  torch_is_list: would that be a list?  torch_copy_entry: one more row like that one. */
int torch_unpack(struct torch_reader *reader, value *word, struct error *err);
bool torch_is_list(value word);
int torch_copy_entry(struct torch_reader *reader, uint64_t row, uint16_t device, struct error *err);

/* torch_graph.c: an object was named again, and costs as much again: a row of this kind, or as many words.  A small file
 * must not fill the memory that way. */
int torch_count_row(struct torch_reader *reader, enum row_kind kind, struct error *err);
int torch_count_words(struct torch_reader *reader, uint64_t words, struct error *err);

/* torch_graph.c: replace words of packed objects by their rows, everywhere; refuse what is too deep or no data. */
int torch_settle(struct torch_reader *reader, struct error *err);

#endif
