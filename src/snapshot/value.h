/*
 * Plain data as pickles have it: None, bools, integers of any length, floats, strings, bytes, lists, tuples, dicts,
 * sets.  A value is one word, so that millions fit; containers and long things live in a store and keep their identity:
 * two words that are equal are the same object.  It carries what a snapshot file says beyond our columns, so that
 * nothing is lost when it is written back.
 *
 * Strings are string *objects* of a snapshot (snapshot.h), numbered apart from their content, because files share
 * some equal strings and not others.  VALUE_ROW points at something that lives in the columns (a context, a frame, an
 * entry, ...).
 *
 * Not thread safe.  A store's memory is freed as a whole; containers may also be given back one by one.
 */
#ifndef SNAPSHOT_VALUE_H
#define SNAPSHOT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t value; /* kind in the top 4 bits, payload in the other 60 */

enum value_kind {
    VALUE_NONE,
    VALUE_FALSE,
    VALUE_TRUE,
    VALUE_INT,    /* payload: a signed 60-bit integer */
    VALUE_LONG,   /* an integer that does not fit: index of little-endian two's complement bytes in the store */
    VALUE_FLOAT,  /* index of a double in the store */
    VALUE_STRING, /* number of a string object of the snapshot */
    VALUE_BYTES,
    VALUE_BYTEARRAY,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_DICT,
    VALUE_SET,
    VALUE_FROZENSET,
    VALUE_ROW,    /* payload: row kind (8 bits) and row number (52 bits): enum row_kind in snapshot.h */
    VALUE_MARK,   /* for the readers' own use */
};

#define VALUE_PAYLOAD_BITS 60
#define VALUE_PAYLOAD_MASK ((UINT64_C(1) << VALUE_PAYLOAD_BITS) - 1)

static inline enum value_kind value_kind(value v)
{
    return (enum value_kind)(v >> VALUE_PAYLOAD_BITS);
}
static inline uint64_t value_payload(value v)
{
    return v & VALUE_PAYLOAD_MASK;
}
static inline value value_make(enum value_kind kind, uint64_t payload)
{
    return (uint64_t)kind << VALUE_PAYLOAD_BITS | (payload & VALUE_PAYLOAD_MASK);
}
static inline value value_row(unsigned row_kind, uint64_t row)
{
    return value_make(VALUE_ROW, (uint64_t)row_kind << 52 | row);
}
static inline unsigned value_row_kind(value v)
{
    return (unsigned)(value_payload(v) >> 52);
}
static inline uint64_t value_row_number(value v)
{
    return v & ((UINT64_C(1) << 52) - 1);
}

struct values; /* the store */

struct values *values_new(void);
void values_free(struct values *values);

/* Integers of any size that fits 64 bits; false from values_get_* if the value is no integer or does not fit. */
value values_int(struct values *values, int64_t number);
value values_unsigned(struct values *values, uint64_t number);
value values_long(struct values *values, const unsigned char *little_endian, size_t length); /* shortened if it fits */
bool values_get_int(const struct values *values, value v, int64_t *number);
bool values_get_unsigned(const struct values *values, value v, uint64_t *number);
const unsigned char *values_long_bytes(const struct values *values, value v, size_t *length);

value values_float(struct values *values, double number);
double values_get_float(const struct values *values, value v);

/* VALUE_BYTES and VALUE_BYTEARRAY. */
value values_bytes(struct values *values, enum value_kind kind, const void *bytes, size_t length);
const unsigned char *values_get_bytes(const struct values *values, value v, size_t *length);

/* Containers.  A dict's items alternate key, value; duplicate keys are kept as the file has them (the later wins, as in
 * Python).  All makers return a VALUE_MARK word with payload 0 when memory ran out: values_failed() tells. */
value values_container(struct values *values, enum value_kind kind);
int values_append(struct values *values, value container, const value *items, size_t count);
size_t values_count(const struct values *values, value container); /* words: twice the pairs of a dict */
const value *values_items(const struct values *values, value container); /* valid until the next append to it */
value *values_items_mutable(struct values *values, value container);

/* Give a container's memory back; the word must not be used again. */
void values_release(struct values *values, value container);

/* What a container's present owner (a reader or writer) remembers about it; zero when it is made. */
struct value_notes {
    uint32_t row, memo;
    uint16_t flags;
};
struct value_notes *values_notes(struct values *values, value container); /* NULL if it is no living container */
value values_word(const struct values *values, uint64_t index); /* of the living container with this payload, or a VALUE_MARK */

/* Give only a container's items back: it stays as an empty one, with its notes. */
void values_clear(struct values *values, value container);

static inline bool value_is_container(value v)
{
    return value_kind(v) >= VALUE_LIST && value_kind(v) <= VALUE_FROZENSET;
}

bool values_failed(const struct values *values);
size_t values_bytes_held(const struct values *values); /* for memory budgets */

/* The value of a dict under a key with this content, or `absent`.  Needs the snapshot's strings: see
 * snapshot_dict_get() in snapshot.h. */

#endif
