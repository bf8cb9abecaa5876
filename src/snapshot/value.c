/*
 * The store of plain data.  Containers are small headers in chunks that never move, their items come from size classes
 * with free lists, so that a reader may make and give back one dict an entry without asking malloc.  Numbers and bytes
 * lie in bump chunks that live as long as the store.  Uses base only.
 */
#include "snapshot/value.h"

#include "base/array.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum {
    CONTAINER_CHUNK = 1024, /* headers a chunk */
    BUMP_CHUNK = 64 * 1024,
    CLASS_COUNT = 14,
    CLASS_LARGEST = 256, /* words; more comes from malloc */
};

static const uint16_t class_words[CLASS_COUNT] = {2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 64, 96, 128, CLASS_LARGEST};

struct container {
    value *items;
    uint32_t count, capacity;
    struct value_notes notes;
    uint8_t kind; /* VALUE_NONE while it is free; then count is the next free one + 1 */
};

struct blob {
    const unsigned char *bytes;
    size_t length;
};

struct values {
    struct container **chunks;
    size_t chunk_count, chunk_capacity;
    uint32_t container_count; /* ever made */
    uint32_t free_container;  /* index + 1 */
    void *free_items[CLASS_COUNT];
    unsigned char **bumps;
    size_t bump_count, bump_capacity;
    size_t bump_used, bump_size;
    struct blob *blobs; /* longs, bytes and bytearrays */
    size_t blob_count, blob_capacity;
    double *floats;
    size_t float_count, float_capacity;
    size_t held;
    bool failed;
};

static value values_fail(struct values *values)
{
    values->failed = true;
    return value_make(VALUE_MARK, 0);
}

struct values *values_new(void)
{
    return calloc(1, sizeof(struct values));
}

static struct container *values_at(const struct values *values, uint64_t index)
{
    return &values->chunks[index / CONTAINER_CHUNK][index % CONTAINER_CHUNK];
}

static struct container *values_find(const struct values *values, value v)
{
    if (!value_is_container(v) || value_payload(v) >= values->container_count)
        return NULL;
    struct container *container = values_at(values, value_payload(v));
    return container->kind == value_kind(v) ? container : NULL;
}

void values_free(struct values *values)
{
    if (!values)
        return;
    for (uint32_t i = 0; i < values->container_count; i++) {
        struct container *container = values_at(values, i);
        if (container->kind != VALUE_NONE && container->capacity > CLASS_LARGEST)
            free(container->items);
    }
    for (size_t i = 0; i < values->chunk_count; i++)
        free(values->chunks[i]);
    for (size_t i = 0; i < values->bump_count; i++)
        free(values->bumps[i]);
    free(values->chunks);
    free(values->bumps);
    free(values->blobs);
    free(values->floats);
    free(values);
}

/* Bytes that live as long as the store, aligned for words. */
static void *values_bump(struct values *values, size_t size)
{
    if (size > SIZE_MAX - BUMP_CHUNK)
        return NULL;
    size = (size + 7) & ~(size_t)7;
    if (size > values->bump_size - values->bump_used) {
        size_t chunk = size > BUMP_CHUNK / 4 ? size : BUMP_CHUNK;
        if (array_reserve(&values->bumps, &values->bump_capacity, values->bump_count + 1, sizeof(*values->bumps)))
            return NULL;
        unsigned char *fresh = malloc(chunk);
        if (!fresh)
            return NULL;
        values->held += chunk;
        if (chunk == size && values->bump_count > 0) { /* a big one of its own; go on with the present chunk */
            values->bumps[values->bump_count] = values->bumps[values->bump_count - 1];
            values->bumps[values->bump_count - 1] = fresh;
            values->bump_count++;
            return fresh;
        }
        values->bumps[values->bump_count++] = fresh;
        values->bump_size = chunk;
        values->bump_used = 0;
    }
    void *result = values->bumps[values->bump_count - 1] + values->bump_used;
    values->bump_used += size;
    return result;
}

static unsigned values_class(size_t words)
{
    unsigned class = 0;
    while (class_words[class] < words)
        class++;
    return class;
}

static void values_give_items(struct values *values, value *items, uint32_t capacity)
{
    if (capacity > CLASS_LARGEST) {
        values->held -= (size_t)capacity * sizeof(value);
        free(items);
    } else if (capacity > 0) {
        unsigned class = values_class(capacity);
        memcpy(items, &values->free_items[class], sizeof(void *));
        values->free_items[class] = items;
    }
}

static value *values_take_items(struct values *values, unsigned class)
{
    void *items = values->free_items[class];
    if (items)
        memcpy(&values->free_items[class], items, sizeof(void *));
    else
        items = values_bump(values, class_words[class] * sizeof(value));
    return items;
}

/* Room for `need` words. */
static int values_grow(struct values *values, struct container *container, size_t need)
{
    if (need > UINT32_MAX - CLASS_LARGEST)
        return STATUS_NO_MEMORY;
    value *items;
    size_t capacity;
    if (need <= CLASS_LARGEST) {
        unsigned class = values_class(need);
        capacity = class_words[class];
        items = values_take_items(values, class);
    } else {
        capacity = container->capacity > CLASS_LARGEST ? (size_t)container->capacity + container->capacity / 2 : need;
        if (capacity < need)
            capacity = need;
        if (capacity > UINT32_MAX)
            capacity = UINT32_MAX;
        if (container->capacity > CLASS_LARGEST) {
            items = realloc(container->items, capacity * sizeof(value));
            if (!items)
                return STATUS_NO_MEMORY;
            values->held += (capacity - container->capacity) * sizeof(value);
            container->items = items;
            container->capacity = (uint32_t)capacity;
            return 0;
        }
        items = malloc(capacity * sizeof(value));
        values->held += items ? capacity * sizeof(value) : 0;
    }
    if (!items)
        return STATUS_NO_MEMORY;
    if (container->count > 0)
        memcpy(items, container->items, container->count * sizeof(value));
    values_give_items(values, container->items, container->capacity);
    container->items = items;
    container->capacity = (uint32_t)capacity;
    return 0;
}

value values_container(struct values *values, enum value_kind kind)
{
    if (kind < VALUE_LIST || kind > VALUE_FROZENSET)
        return values_fail(values);
    uint32_t index;
    if (values->free_container) {
        index = values->free_container - 1;
        values->free_container = values_at(values, index)->count;
    } else {
        if (values->container_count == UINT32_MAX - 1)
            return values_fail(values);
        index = values->container_count;
        if (index / CONTAINER_CHUNK >= values->chunk_count) {
            if (array_reserve(&values->chunks, &values->chunk_capacity, values->chunk_count + 1,
                              sizeof(*values->chunks)))
                return values_fail(values);
            struct container *chunk = malloc(CONTAINER_CHUNK * sizeof(struct container));
            if (!chunk)
                return values_fail(values);
            values->chunks[values->chunk_count++] = chunk;
            values->held += CONTAINER_CHUNK * sizeof(struct container);
        }
        values->container_count++;
    }
    *values_at(values, index) = (struct container){.kind = (uint8_t)kind};
    return value_make(kind, index);
}

int values_append(struct values *values, value container, const value *items, size_t count)
{
    struct container *found = values_find(values, container);
    size_t need;
    if (!found)
        return STATUS_USAGE;
    if (count == 0)
        return 0;
    if (add_overflows(found->count, count, &need) ||
        (need > found->capacity && values_grow(values, found, need))) {
        values->failed = true;
        return STATUS_NO_MEMORY;
    }
    memcpy(found->items + found->count, items, count * sizeof(value));
    found->count = (uint32_t)need;
    return 0;
}

size_t values_count(const struct values *values, value container)
{
    const struct container *found = values_find(values, container);
    return found ? found->count : 0;
}

const value *values_items(const struct values *values, value container)
{
    const struct container *found = values_find(values, container);
    return found ? found->items : NULL;
}

value *values_items_mutable(struct values *values, value container)
{
    struct container *found = values_find(values, container);
    return found ? found->items : NULL;
}

struct value_notes *values_notes(struct values *values, value container)
{
    struct container *found = values_find(values, container);
    return found ? &found->notes : NULL;
}

value values_word(const struct values *values, uint64_t index)
{
    enum value_kind kind = index < values->container_count ? values_at(values, index)->kind : VALUE_NONE;
    return kind == VALUE_NONE ? value_make(VALUE_MARK, 0) : value_make(kind, index);
}

void values_clear(struct values *values, value container)
{
    struct container *found = values_find(values, container);
    if (!found)
        return;
    values_give_items(values, found->items, found->capacity);
    found->items = NULL;
    found->count = found->capacity = 0;
}

void values_release(struct values *values, value container)
{
    struct container *found = values_find(values, container);
    if (!found)
        return;
    values_clear(values, container);
    found->kind = VALUE_NONE;
    found->count = values->free_container;
    values->free_container = (uint32_t)value_payload(container) + 1;
}

/* ---- numbers and bytes ---- */

static value values_blob(struct values *values, enum value_kind kind, const void *bytes, size_t length)
{
    unsigned char *copy = NULL;
    size_t before = values->blob_capacity;
    if (array_reserve(&values->blobs, &values->blob_capacity, values->blob_count + 1, sizeof(*values->blobs)))
        return values_fail(values);
    values->held += (values->blob_capacity - before) * sizeof(*values->blobs);
    if (length > 0) {
        copy = values_bump(values, length);
        if (!copy)
            return values_fail(values);
        memcpy(copy, bytes, length);
    }
    values->blobs[values->blob_count] = (struct blob){copy, length};
    return value_make(kind, values->blob_count++);
}

#define SMALL_INT_MAX ((INT64_C(1) << (VALUE_PAYLOAD_BITS - 1)) - 1)
#define SMALL_INT_MIN (-SMALL_INT_MAX - 1)

value values_long(struct values *values, const unsigned char *little_endian, size_t length)
{
    while (length > 1 && ((little_endian[length - 1] == 0 && little_endian[length - 2] < 0x80) ||
                          (little_endian[length - 1] == 0xff && little_endian[length - 2] >= 0x80)))
        length--; /* minimal, so that equal numbers have equal bytes */
    if (length <= 8) {
        uint64_t bits = length > 0 && little_endian[length - 1] >= 0x80 ? UINT64_MAX : 0;
        for (size_t i = length; i > 0; i--)
            bits = bits << 8 | little_endian[i - 1];
        int64_t number = (int64_t)bits;
        if (number >= SMALL_INT_MIN && number <= SMALL_INT_MAX)
            return value_make(VALUE_INT, bits);
    }
    return values_blob(values, VALUE_LONG, little_endian, length);
}

value values_int(struct values *values, int64_t number)
{
    if (number >= SMALL_INT_MIN && number <= SMALL_INT_MAX)
        return value_make(VALUE_INT, (uint64_t)number);
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)number >> (8 * i));
    return values_blob(values, VALUE_LONG, bytes, 8);
}

value values_unsigned(struct values *values, uint64_t number)
{
    if (number <= (uint64_t)SMALL_INT_MAX)
        return value_make(VALUE_INT, number);
    unsigned char bytes[9] = {0};
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    return values_long(values, bytes, 9);
}

static const struct blob *values_get_blob(const struct values *values, value v)
{
    return value_payload(v) < values->blob_count ? &values->blobs[value_payload(v)] : NULL;
}

const unsigned char *values_long_bytes(const struct values *values, value v, size_t *length)
{
    const struct blob *blob = value_kind(v) == VALUE_LONG ? values_get_blob(values, v) : NULL;
    *length = blob ? blob->length : 0;
    return blob ? blob->bytes : NULL;
}

static bool values_wide(const struct values *values, value v, size_t most, uint64_t *bits, bool *negative)
{
    size_t length;
    const unsigned char *bytes = values_long_bytes(values, v, &length);
    if (!bytes || length > most)
        return false;
    *negative = bytes[length - 1] >= 0x80;
    *bits = *negative ? UINT64_MAX : 0;
    for (size_t i = length < 8 ? length : 8; i > 0; i--)
        *bits = *bits << 8 | bytes[i - 1];
    return length < 9 || bytes[8] == 0;
}

bool values_get_int(const struct values *values, value v, int64_t *number)
{
    uint64_t bits;
    bool negative;
    if (value_kind(v) == VALUE_INT) {
        *number = (int64_t)(v << (64 - VALUE_PAYLOAD_BITS)) >> (64 - VALUE_PAYLOAD_BITS);
        return true;
    }
    if (!values_wide(values, v, 8, &bits, &negative))
        return false;
    *number = (int64_t)bits;
    return true;
}

bool values_get_unsigned(const struct values *values, value v, uint64_t *number)
{
    bool negative;
    if (value_kind(v) == VALUE_INT) {
        int64_t small = 0;
        values_get_int(values, v, &small);
        *number = (uint64_t)small;
        return small >= 0;
    }
    return values_wide(values, v, 9, number, &negative) && !negative;
}

value values_float(struct values *values, double number)
{
    size_t before = values->float_capacity;
    if (array_reserve(&values->floats, &values->float_capacity, values->float_count + 1, sizeof(*values->floats)))
        return values_fail(values);
    values->held += (values->float_capacity - before) * sizeof(*values->floats);
    values->floats[values->float_count] = number;
    return value_make(VALUE_FLOAT, values->float_count++);
}

double values_get_float(const struct values *values, value v)
{
    return value_kind(v) == VALUE_FLOAT && value_payload(v) < values->float_count ? values->floats[value_payload(v)]
                                                                                  : 0;
}

value values_bytes(struct values *values, enum value_kind kind, const void *bytes, size_t length)
{
    return values_blob(values, kind, bytes, length);
}

const unsigned char *values_get_bytes(const struct values *values, value v, size_t *length)
{
    bool right = value_kind(v) == VALUE_BYTES || value_kind(v) == VALUE_BYTEARRAY;
    const struct blob *blob = right ? values_get_blob(values, v) : NULL;
    *length = blob ? blob->length : 0;
    return blob ? blob->bytes : NULL;
}

bool values_failed(const struct values *values)
{
    return values->failed;
}

size_t values_bytes_held(const struct values *values)
{
    return values->held;
}
