/*
 * Dicts into rows: shapes, odd values, and the fields that several kinds of rows share.  Uses base and snapshot.
 */
#include "format/torch_pack.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static const char *torch_word_text(unsigned word)
{
    static const char *const rest[] = {"active_awaiting_free", "small", "large", "START", "END", "real_size",
                                       "trace_alloc_max_entries", "trace_alloc_overflowed"};
    if (word < TORCH_WORD_ACTIONS)
        return field_name((enum field)(word - TORCH_WORD_FIELDS));
    if (word < TORCH_WORD_STATES)
        return action_name((enum action)(word - TORCH_WORD_ACTIONS));
    if (word < TORCH_WORD_AWAITING)
        return block_state_name((enum block_state)(word - TORCH_WORD_STATES));
    return rest[word - TORCH_WORD_AWAITING];
}

int torch_words(struct torch_reader *reader, struct error *err)
{
    for (unsigned i = 0; i < TORCH_WORD_COUNT; i++) {
        uint32_t content = strings_intern_text(reader->snapshot->strings, torch_word_text(i));
        if (i == 0)
            reader->first_word = content;
        if (content == STRING_NONE || content != reader->first_word + i)
            return error_no_memory(err);
    }
    return 0;
}

static uint32_t torch_content(const struct torch_reader *reader, value string)
{
    return reader->snapshot->string_objects[value_payload(string)];
}

int torch_word_of(const struct torch_reader *reader, value v)
{
    if (value_kind(v) != VALUE_STRING)
        return -1;
    uint32_t word = torch_content(reader, v) - reader->first_word;
    return word < TORCH_WORD_COUNT ? (int)word : -1;
}

/* The object that stands for this content as a key or word of PyTorch's. */
void torch_share_string(struct torch_reader *reader, value v)
{
    uint32_t *object = table_at(&reader->snapshot->shared_strings, torch_content(reader, v), NONE32);
    if (object && *object == NONE32)
        *object = (uint32_t)value_payload(v);
}

/* ---- shapes ---- */

static int compare_keys(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

static bool torch_keys_are_distinct(const uint32_t *keys, size_t count)
{
    if (count <= 24) {
        for (size_t i = 1; i < count; i++)
            for (size_t k = 0; k < i; k++)
                if (keys[i] == keys[k])
                    return false;
        return true;
    }
    uint32_t *sorted = malloc(count * sizeof(*sorted));
    bool distinct = sorted != NULL;
    if (sorted) {
        memcpy(sorted, keys, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), compare_keys);
        for (size_t i = 1; i < count && distinct; i++)
            distinct = sorted[i] != sorted[i - 1];
    }
    free(sorted);
    return distinct;
}

static bool torch_keys_equal(const struct snapshot *snapshot, uint32_t shape, const uint32_t *keys, size_t count)
{
    const struct shape *known = &snapshot->shapes[shape];
    return shape != SHAPE_OURS && known->count == count && (!count || memcmp(known->keys, keys, count * sizeof(*keys)) == 0);
}

/* The keys of a dict as shape keys, in reader->keys. */
static int torch_keys(struct torch_reader *reader, const value *items, size_t count, struct error *err)
{
    if (count > UINT16_MAX)
        return TORCH_INEXACT;
    if (array_reserve(&reader->keys, &reader->key_capacity, count, sizeof(*reader->keys)))
        return error_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        if (value_kind(items[2 * i]) != VALUE_STRING)
            return TORCH_INEXACT;
        uint32_t content = torch_content(reader, items[2 * i]);
        uint32_t field = content - reader->first_word;
        if (field >= FIELD_COUNT && content >= UINT32_MAX - FIELD_COUNT)
            return TORCH_INEXACT;
        reader->keys[i] = field < FIELD_COUNT ? field : FIELD_COUNT + content;
    }
    reader->key_count = count;
    return 0;
}

int torch_open_dict(struct torch_reader *reader, value dict, enum row_kind kind, struct torch_dict *result,
                    struct error *err)
{
    struct snapshot *snapshot = reader->snapshot;
    result->word = dict;
    result->items = values_items_mutable(reader->values, dict);
    result->count = (uint32_t)(values_count(reader->values, dict) / 2);
    result->kind = (uint8_t)kind;
    result->shape = SHAPE_OURS;
    result->keep = false;
    uint32_t count = result->count;
    int status = torch_keys(reader, result->items, count, err);
    result->count = 0; /* unless all is well */
    if (status)
        return status;
    uint32_t shape = reader->last_shape[kind];
    if (!torch_keys_equal(snapshot, shape, reader->keys, count)) {
        if (!torch_keys_are_distinct(reader->keys, count))
            return TORCH_INEXACT;
        size_t before = snapshot->shape_count;
        shape = snapshot_shape(snapshot, kind, reader->keys, count);
        if (shape == NONE32)
            return snapshot->shape_count > UINT16_MAX ? TORCH_INEXACT : error_no_memory(err);
        for (uint32_t i = 0; i < count && snapshot->shape_count > before; i++)
            torch_share_string(reader, result->items[2 * i]);
        reader->last_shape[kind] = shape;
    }
    result->count = count;
    result->shape = (uint16_t)shape;
    result->keys = snapshot->shapes[shape].keys;
    return 0;
}

/* Only what nothing else names may turn into a row for good. */
bool torch_is_exact(const struct torch_reader *reader, value dict)
{
    const struct value_notes *notes = values_notes(reader->values, dict);
    return notes && !(notes->flags & (PICKLE_FETCHED | PICKLE_PACKED | PICKLE_STREAM));
}

int torch_close_dict(struct torch_reader *reader, const struct torch_dict *dict, struct error *err)
{
    if (dict->keep)
        return torch_count_row(reader, (enum row_kind)dict->kind, err);
    return pickle_packed(reader->pickle, dict->word, value_row(dict->kind, dict->row), err);
}

/* ---- odd values ---- */

static value torch_no_memory(void)
{
    return value_make(VALUE_MARK, 0);
}

/* The packed object behind one of the reader's own rows, as an object again.  Its row's field becomes an odd value, so
 * that both places name the same object. */
static value torch_promote(struct torch_reader *reader, unsigned local, uint64_t row)
{
    struct snapshot *snapshot = reader->snapshot;
    bool is_entry = local == PICKLE_ROW_ENTRY_POOL;
    if (row >= (is_entry ? snapshot->entries.count : snapshot->end.segment_count) ||
        (is_entry && !snapshot->entries.pool))
        return value_make(VALUE_NONE, 0); /* entries are not kept */
    const struct segment *segment = is_entry ? NULL : &snapshot->end.segments[row];
    value made = values_container(reader->values, local == PICKLE_ROW_SEGMENT_BLOCKS ? VALUE_LIST : VALUE_TUPLE);
    if (!value_is_container(made))
        return torch_no_memory();
    values_notes(reader->values, made)->flags |= PICKLE_FETCHED;
    if (local == PICKLE_ROW_SEGMENT_BLOCKS) {
        for (uint32_t i = 0; i < segment->block_count; i++) {
            value block = value_row(ROW_BLOCK, segment->first_block + i);
            if (values_append(reader->values, made, &block, 1))
                return torch_no_memory();
        }
    } else {
        uint32_t pool = is_entry ? snapshot->entries.pool[row] : segment->pool;
        value ids[2] = {0, 0};
        for (int i = 0; i < 2 && pool < snapshot->pool_count; i++)
            ids[i] = values_int(reader->values, snapshot->pools[pool].id[i]);
        if (values_append(reader->values, made, ids, 2))
            return torch_no_memory();
    }
    enum field field = is_entry ? FIELD_POOL_ID : local == PICKLE_ROW_SEGMENT_POOL ? FIELD_SEGMENT_POOL_ID : FIELD_BLOCKS;
    const struct shape *shape = &snapshot->shapes[is_entry ? snapshot->entries.shape[row] : segment->shape];
    for (uint32_t slot = 0; slot < shape->count; slot++)
        if (shape->keys[slot] == (uint32_t)field &&
            snapshot_set_odd(snapshot, is_entry ? ROW_ENTRY : ROW_SEGMENT, row, (uint16_t)slot, made))
            return torch_no_memory();
    return made;
}

value torch_resolve(struct torch_reader *reader, value v)
{
    if (value_kind(v) != VALUE_ROW || value_row_kind(v) < PICKLE_ROW_ENTRY_POOL)
        return v;
    uint64_t key = value_payload(v);
    uint32_t index = table_get(&reader->promoted, key, NONE32);
    if (index != NONE32)
        return values_word(reader->values, index);
    value made = torch_promote(reader, value_row_kind(v), value_row_number(v));
    if (value_is_container(made) && table_set(&reader->promoted, key, (uint32_t)value_payload(made)))
        return torch_no_memory();
    return made;
}

int torch_set_odd(struct torch_reader *reader, enum row_kind kind, uint64_t row, uint16_t slot, value word, bool is_copy)
{
    size_t before = reader->snapshot->odd_count;
    int status = snapshot_set_odd(reader->snapshot, kind, row, slot, word);
    if (is_copy && reader->snapshot->odd_count > before) {
        reader->copied += sizeof(struct odd) + TORCH_ODD_SLOT;
        reader->expanded += sizeof(struct odd) + TORCH_ODD_SLOT;
    }
    return status;
}

int torch_odd(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, struct error *err)
{
    if ((dict->kind == ROW_ENTRY && reader->options.skip_traces) || dict->shape == SHAPE_OURS)
        return 0; /* not kept, or the dict itself is */
    value word = torch_resolve(reader, dict->items[2 * slot + 1]);
    if (word == value_make(VALUE_MARK, 0) ||
        torch_set_odd(reader, (enum row_kind)dict->kind, dict->row, (uint16_t)slot, word, dict->keep))
        return error_no_memory(err);
    return 0;
}

/* A number that is no plain integer may still say how much: True, 3.0. */
static bool torch_loose_number(const struct torch_reader *reader, value v, int64_t *number)
{
    if (value_kind(v) == VALUE_TRUE || value_kind(v) == VALUE_FALSE) {
        *number = value_kind(v) == VALUE_TRUE;
        return true;
    }
    double real = value_kind(v) == VALUE_FLOAT ? values_get_float(reader->values, v) : -1;
    if (!(real >= 0 && real < 9e18) || real != (double)(int64_t)real)
        return false;
    *number = (int64_t)real;
    return true;
}

int torch_unsigned(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint64_t *number,
                   bool *is_bad, struct error *err)
{
    value word = dict->items[2 * slot + 1];
    int64_t loose = 0;
    if (values_get_unsigned(reader->values, word, number))
        return 0;
    if (values_get_int(reader->values, word, &loose) && dict->keys[slot] != FIELD_SIZE &&
        dict->keys[slot] != FIELD_TOTAL_SIZE)
        *number = (uint64_t)loose; /* an address that was cast to a signed one */
    else if (torch_loose_number(reader, word, &loose))
        *number = (uint64_t)loose;
    else {
        *number = 0;
        *is_bad = true;
    }
    return torch_odd(reader, dict, slot, err);
}

int torch_signed(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, int64_t *number,
                 bool *is_bad, struct error *err)
{
    value word = dict->items[2 * slot + 1];
    if (values_get_int(reader->values, word, number))
        return 0;
    if (!torch_loose_number(reader, word, number)) {
        *number = 0;
        *is_bad = true;
    }
    return torch_odd(reader, dict, slot, err);
}

int torch_string(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint32_t *object,
                 struct error *err)
{
    value word = dict->items[2 * slot + 1];
    if (value_kind(word) != VALUE_STRING)
        return torch_odd(reader, dict, slot, err);
    *object = (uint32_t)value_payload(word);
    return 0;
}

/* ---- pools ---- */

int torch_pool_of(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint32_t *pool,
                  struct error *err)
{
    value word = torch_resolve(reader, dict->items[2 * slot + 1]);
    int64_t id[2];
    if (word == value_make(VALUE_MARK, 0))
        return error_no_memory(err);
    dict->items[2 * slot + 1] = word;
    const value *items = value_kind(word) == VALUE_TUPLE ? values_items(reader->values, word) : NULL;
    bool is_pair = items && values_count(reader->values, word) == 2 && values_get_int(reader->values, items[0], &id[0]) &&
                   values_get_int(reader->values, items[1], &id[1]);
    *pool = is_pair ? snapshot_pool(reader->snapshot, id[0], id[1]) : NONE32;
    if (is_pair && *pool == NONE32)
        return error_no_memory(err);
    if (!is_pair || dict->keep || !torch_is_exact(reader, word))
        return torch_odd(reader, dict, slot, err);
    unsigned kind = dict->kind == ROW_ENTRY ? PICKLE_ROW_ENTRY_POOL : PICKLE_ROW_SEGMENT_POOL;
    return pickle_packed(reader->pickle, word, value_row(kind, dict->row), err);
}

/* ---- frames and contexts ---- */

static int torch_frame(struct torch_reader *reader, value word, uint32_t *frame, struct error *err)
{
    if (value_kind(word) == VALUE_ROW) {
        *frame = (uint32_t)value_row_number(word);
        return 0;
    }
    const struct value_notes *notes = values_notes(reader->values, word);
    if (notes && (notes->flags & PICKLE_PACKED)) {
        *frame = notes->row - 1;
        return 0;
    }
    struct torch_dict dict = {.row = reader->snapshot->frame_count};
    struct frame added = {.name = STRING_NONE, .filename = STRING_NONE, .module = NONE32};
    int status = torch_open_dict(reader, word, ROW_FRAME, &dict, err);
    for (uint32_t i = 0; i < dict.count && !status; i++) {
        bool bad = false;
        if (dict.keys[i] == FIELD_NAME)
            status = torch_string(reader, &dict, i, &added.name, err);
        else if (dict.keys[i] == FIELD_FILENAME)
            status = torch_string(reader, &dict, i, &added.filename, err);
        else if (dict.keys[i] == FIELD_LINE)
            status = torch_signed(reader, &dict, i, &added.line, &bad, err);
        else
            status = torch_odd(reader, &dict, i, err);
    }
    if (status)
        return status;
    added.shape = dict.shape;
    *frame = snapshot_add_frame(reader->snapshot, &added);
    return *frame == NONE32 ? error_no_memory(err) : torch_close_dict(reader, &dict, err);
}

/* Could every item be a frame?  Nothing is changed. */
static int torch_are_frames(struct torch_reader *reader, const value *items, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (value_kind(items[i]) == VALUE_ROW && value_row_kind(items[i]) == ROW_FRAME)
            continue;
        const struct value_notes *notes = values_notes(reader->values, items[i]);
        if (value_kind(items[i]) != VALUE_DICT || !notes || (notes->flags & PICKLE_STREAM))
            return TORCH_INEXACT;
        if (notes->flags & PICKLE_PACKED)
            continue;
        struct torch_dict dict;
        int status = torch_open_dict(reader, items[i], ROW_FRAME, &dict, err);
        if (status)
            return status;
    }
    return 0;
}

int torch_context(struct torch_reader *reader, value list, value *row, struct error *err)
{
    struct snapshot *snapshot = reader->snapshot;
    const struct value_notes *notes = values_notes(reader->values, list);
    if (!notes || value_kind(list) != VALUE_LIST || (notes->flags & PICKLE_STREAM))
        return TORCH_INEXACT;
    if (notes->flags & PICKLE_PACKED) {
        *row = value_row(ROW_CONTEXT, notes->row - 1);
        return 0;
    }
    const value *items = values_items(reader->values, list);
    size_t count = values_count(reader->values, list);
    int status = torch_are_frames(reader, items, count, err);
    if (status > 0 && torch_count_words(reader, count, err)) /* it may be looked at again, wherever it stands */
        return STATUS_NO_MEMORY;
    if (status)
        return status;
    uint32_t stack = STACK_EMPTY, frame = 0;
    uint32_t *frames = malloc((count ? count : 1) * sizeof(*frames));
    if (!frames)
        return error_no_memory(err);
    for (size_t i = 0; i < count && !status; i++) {
        status = torch_frame(reader, items[i], &frame, err);
        frames[i] = frame;
    }
    for (size_t i = count; i > 0 && !status && stack != NONE32; i--)
        stack = snapshot_push_frame(snapshot, stack, frames[i - 1]);
    free(frames);
    if (status)
        return status;
    uint32_t context = stack == NONE32 ? NONE32 : snapshot_add_context(snapshot, stack);
    if (context == NONE32)
        return error_no_memory(err);
    *row = value_row(ROW_CONTEXT, context);
    return pickle_packed(reader->pickle, list, *row, err);
}

int torch_context_of(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint32_t *context,
                     struct error *err)
{
    value row = dict->items[2 * slot + 1];
    int status = 0;
    if (value_kind(row) == VALUE_LIST)
        status = torch_context(reader, row, &row, err);
    if (status < 0)
        return status;
    if (status || value_kind(row) != VALUE_ROW || value_row_kind(row) != ROW_CONTEXT)
        return torch_odd(reader, dict, slot, err);
    dict->items[2 * slot + 1] = row;
    *context = (uint32_t)value_row_number(row);
    return 0;
}
