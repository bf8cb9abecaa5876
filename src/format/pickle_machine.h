/*
 * Inside the unpickling machine, for its own sources and for hooks (pickle_read.h).
 *
 * The stack holds words (value.h).  A VALUE_MARK word with payload PICKLE_MARK is the mark that opens a batch, other
 * payloads stand for harmless classes.  The memo holds 32-bit codes: most of what is memoized in a big file is a string
 * or something already packed into columns, and a memo of 64-bit words would double what such a file costs.
 *
 * A container can be given back only when nothing else can name it.  It is named from elsewhere once it was fetched from
 * the memo or duplicated: PICKLE_FETCHED in its notes; notes.memo is its memo number + 1.
 */
#ifndef FORMAT_PICKLE_MACHINE_H
#define FORMAT_PICKLE_MACHINE_H

#include "base/text.h"
#include "format/pickle_read.h"

enum { PICKLE_DEPTH = 500, PICKLE_STRING_CACHE = 1024 };
enum { PICKLE_FAILED_WORD = 0, PICKLE_MARK = 1, PICKLE_CLASS = 2 }; /* payloads of VALUE_MARK */

enum pickle_note {          /* value_notes.flags; the low 10 bits are the depth */
    PICKLE_DEPTH_BITS = 0x3ff,
    PICKLE_FETCHED = 0x400, /* more than one place can name it */
    PICKLE_PACKED = 0x800,  /* lives in the columns now: notes.row is its row + 1 */
    PICKLE_STREAM = 0x1000, /* the hooks take what is appended: notes.row is theirs */
    PICKLE_SEEN = 0x2000,
};

/* Row kinds of the readers' own, beside enum row_kind: the pool tuple of an entry or segment, the blocks of a segment. */
enum { PICKLE_ROW_ENTRY_POOL = 100, PICKLE_ROW_SEGMENT_POOL = 101, PICKLE_ROW_SEGMENT_BLOCKS = 102 };

enum pickle_code { /* top 3 bits of a memo code */
    PICKLE_CODE_UNSET,
    PICKLE_CODE_STRING,
    PICKLE_CODE_CONTAINER, /* its index; the kind is in the store */
    PICKLE_CODE_ENTRY,
    PICKLE_CODE_CONTEXT,
    PICKLE_CODE_FRAME,
    PICKLE_CODE_ENTRY_POOL,
    PICKLE_CODE_WIDE, /* index into wide[] */
};
#define PICKLE_CODE_SHIFT 29
#define PICKLE_CODE_PAYLOAD ((UINT32_C(1) << PICKLE_CODE_SHIFT) - 1)

struct pickle_cached {
    const char *text;
    uint32_t length, content;
};

struct pickle {
    const unsigned char *at, *end; /* the window; reading goes on at `at` */
    const unsigned char *window;
    uint64_t window_offset;        /* of window[0] in the input */
    bool at_end;
    struct input *input;
    struct snapshot *snapshot;
    struct values *values;
    const struct pickle_hooks *hooks;
    void *context;

    value *stack;
    size_t depth, stack_capacity;
    size_t *marks;                   /* where on the stack marks stand */
    size_t mark_count, mark_capacity;
    size_t handed;                   /* the mark (+ 1) of the open batch of which items were handed over already */
    uint32_t *memo;
    size_t memo_size, memo_capacity; /* codes up to the highest number in the array */
    uint64_t memo_set;               /* numbers in use: the next one of MEMOIZE */
    bool memo_replaced;              /* a number was given to another object */
    struct table sparse_memo;        /* numbers too far out for the array */
    value *wide;
    size_t wide_count, wide_capacity;
    bool row_fetched;                /* an object packed as a row of its own was named again */

    uint64_t string_bytes;           /* for the memory check */
    uint64_t checked_at;
    value empty_tuple;               /* 0: not made yet */
    struct text scratch;             /* of protocol 0's lines and long strings */
    bool has_class;
    uint64_t op_offset;
    struct pickle_cached strings[PICKLE_STRING_CACHE];
};

static inline uint64_t pickle_offset(const struct pickle *pickle)
{
    return pickle->window_offset + (uint64_t)(pickle->at - pickle->window);
}

/* See to it that `want` bytes (64 KiB at most) are in the window unless the input ends; checks the memory budget. */
int pickle_refill(struct pickle *pickle, size_t want, struct error *err);

/* Memory against the budget: call it at least once for every 64 KiB of input. */
int pickle_check_memory(struct pickle *pickle, struct error *err);

value pickle_memo_get(const struct pickle *pickle, uint64_t number); /* VALUE_MARK, 0 if there is none */
int pickle_memo_put(struct pickle *pickle, uint64_t number, value object, struct error *err);
int pickle_memo_replace(struct pickle *pickle, uint64_t number, value object, struct error *err); /* the same object, packed */

/* The content of these bytes, and a new string object of it; NONE32: no memory. */
uint32_t pickle_content_slow(struct pickle *pickle, const char *bytes, size_t length);
bool pickle_is_utf8(const char *bytes, size_t length);

static inline uint32_t pickle_content(struct pickle *pickle, const char *bytes, size_t length)
{
    /* Most strings of a big file are the same few short ones. */
    if (length > 0 && length <= 32) {
        unsigned hash = (unsigned char)bytes[0] * 31u + (unsigned char)bytes[length - 1] * 131u +
                        (unsigned char)bytes[length / 2] * 17u + (unsigned)length * 7u;
        const struct pickle_cached *cached = &pickle->strings[hash % PICKLE_STRING_CACHE];
        if (cached->length == length && __builtin_memcmp(cached->text, bytes, length) == 0)
            return cached->content;
    }
    return pickle_content_slow(pickle, bytes, length);
}

/* Memo codes of things that fit one; the caller knows that they do. */
static inline uint32_t pickle_code(enum pickle_code kind, uint32_t payload)
{
    return (uint32_t)kind << PICKLE_CODE_SHIFT | payload;
}

int pickle_push_slow(struct pickle *pickle, value word);

/* 0, or STATUS_NO_MEMORY without a message. */
static inline int pickle_push(struct pickle *pickle, value word)
{
    if (__builtin_expect(pickle->depth == pickle->stack_capacity, 0))
        return pickle_push_slow(pickle, word);
    pickle->stack[pickle->depth++] = word;
    return 0;
}

/* A dict, or one that was packed as a row and is named once more. */
static inline bool pickle_is_dict(value v)
{
    if (value_kind(v) != VALUE_ROW)
        return value_kind(v) == VALUE_DICT;
    unsigned kind = value_row_kind(v);
    return kind == ROW_ENTRY || kind == ROW_SEGMENT || kind == ROW_BLOCK || kind == ROW_FRAME || kind == ROW_ANNOTATION;
}

/* A packed object: its container (never again named by its word if it was not fetched) gives way to the row. */
int pickle_packed(struct pickle *pickle, value container, value row, struct error *err);

/* ---- between the machine's sources ---- */
int pickle_need(struct pickle *pickle, size_t count, struct error *err); /* bytes in the window, or "cut short" */
int pickle_get(struct pickle *pickle, uint64_t number, struct error *err);
int pickle_put(struct pickle *pickle, uint64_t number, struct error *err);
void pickle_named_again(struct pickle *pickle, value object);
int pickle_push_made(struct pickle *pickle, value word, struct error *err); /* or "no memory" if making it failed */
int pickle_string(struct pickle *pickle, uint64_t length, bool is_text, struct error *err); /* push a string object */
int pickle_bytes(struct pickle *pickle, enum value_kind kind, uint64_t length, struct error *err);
int pickle_long(struct pickle *pickle, uint64_t length, struct error *err);
int pickle_text_opcode(struct pickle *pickle, unsigned char opcode, struct error *err);   /* protocol 0's lines */
int pickle_push_text(struct pickle *pickle, const char *bytes, size_t length, struct error *err);
int pickle_line(struct pickle *pickle, struct error *err);                                /* into scratch, without \n */
int pickle_read_exactly(struct pickle *pickle, void *to, size_t length, struct error *err);
int pickle_global(struct pickle *pickle, const char *module, const char *name, struct error *err);
int pickle_reduce(struct pickle *pickle, struct error *err);
value pickle_tuple(struct pickle *pickle, size_t count); /* empty; the one empty one for count 0 */
int pickle_append_items(struct pickle *pickle, value container, const value *items, size_t count, struct error *err);
int pickle_fail(struct pickle *pickle, struct error *err, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
