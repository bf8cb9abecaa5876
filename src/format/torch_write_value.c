/*
 * Values and strings with their identity: what was written before is referred to.  Uses base and snapshot.
 */
#include "format/torch_writer.h"

#include <string.h>

enum { DEPTH_MOST = 2000 };

void torch_write_fail(struct torch_writer *writer, int status, const char *message)
{
    if (!writer->status)
        writer->status = error_set(writer->err, status, "%s", message);
}

bool torch_written(struct torch_writer *writer, value word)
{
    uint32_t memo = table_get(&writer->objects, word, NONE32);
    if (memo != NONE32)
        pickle_write_get(writer->pickle, memo);
    return memo != NONE32;
}

void torch_remember(struct torch_writer *writer, value word)
{
    if (table_set(&writer->objects, word, pickle_memoize(writer->pickle)))
        torch_write_fail(writer, STATUS_NO_MEMORY, "out of memory");
}

void torch_write_object(struct torch_writer *writer, uint32_t object)
{
    if (object >= writer->snapshot->string_object_count) {
        pickle_op(writer->pickle, 'N');
    } else if (writer->strings[object]) {
        pickle_write_get(writer->pickle, writer->strings[object] - 1);
    } else {
        size_t length;
        const char *text = snapshot_object_text(writer->snapshot, object, &length);
        pickle_write_string(writer->pickle, text, length);
        writer->strings[object] = pickle_memoize(writer->pickle) + 1;
    }
}

void torch_write_shared(struct torch_writer *writer, struct torch_shared *shared)
{
    if (shared->object != NONE32) {
        torch_write_object(writer, shared->object);
    } else if (shared->memo) {
        pickle_write_get(writer->pickle, shared->memo - 1);
    } else {
        pickle_write_string(writer->pickle, shared->text, strlen(shared->text));
        shared->memo = pickle_memoize(writer->pickle) + 1;
    }
}

void torch_write_content(struct torch_writer *writer, uint32_t content)
{
    uint32_t object = table_get(&writer->snapshot->shared_strings, content, NONE32);
    uint32_t memo = table_get(&writer->contents, content, NONE32);
    if (object != NONE32) {
        torch_write_object(writer, object);
    } else if (memo != NONE32) {
        pickle_write_get(writer->pickle, memo);
    } else {
        size_t length;
        const char *text = snapshot_content_text(writer->snapshot, content, &length);
        int field = field_from_name(text, length);
        if (field >= 0) {
            torch_write_shared(writer, &writer->fields[field]);
            return;
        }
        pickle_write_string(writer->pickle, text, length);
        if (table_set(&writer->contents, content, pickle_memoize(writer->pickle)))
            torch_write_fail(writer, STATUS_NO_MEMORY, "out of memory");
    }
}

void torch_write_key(struct torch_writer *writer, uint32_t key)
{
    if (key < FIELD_COUNT)
        torch_write_shared(writer, &writer->fields[key]);
    else
        torch_write_content(writer, key - FIELD_COUNT);
}

static struct torch_shared *torch_find_shared(struct torch_shared *words, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i].text, text) == 0)
            return &words[i];
    return NULL;
}

/* A string among objects that is one of PyTorch's words.  Where it is not known which object rows use for that word
 * (snapshot.bin does not keep it), it is this one. */
static void torch_write_word(struct torch_writer *writer, uint32_t object)
{
    const struct snapshot *snapshot = writer->snapshot;
    if (object < snapshot->string_object_count && !writer->strings[object] &&
        !table_has(&snapshot->shared_strings, snapshot->string_objects[object])) {
        const char *text = snapshot_object_text(snapshot, object, NULL);
        struct torch_shared *word = torch_find_shared(writer->actions, ACTION_COUNT, text);
        if (!word)
            word = torch_find_shared(writer->states, BLOCK_STATE_OTHER, text);
        if (!word)
            word = torch_find_shared(writer->texts, TORCH_TEXT_COUNT, text);
        if (word && word->memo)
            writer->strings[object] = word->memo;
        else if (word && word->object == NONE32)
            word->object = object;
    }
    torch_write_object(writer, object);
}

/* A dict's key: one object a content, as in PyTorch's files. */
static void torch_write_dict_key(struct torch_writer *writer, value key)
{
    if (value_kind(key) == VALUE_STRING && value_payload(key) < writer->snapshot->string_object_count)
        torch_write_content(writer, writer->snapshot->string_objects[value_payload(key)]);
    else
        torch_write_value(writer, key);
}

/* Containers that can be named while they are being filled. */
static void torch_write_open(struct torch_writer *writer, value v)
{
    const struct values *values = writer->snapshot->values;
    bool is_dict = value_kind(v) == VALUE_DICT;
    size_t words = values_count(values, v), count = is_dict ? words / 2 : words;
    unsigned char batch = is_dict ? PICKLE_SETITEMS : value_kind(v) == VALUE_LIST ? PICKLE_APPENDS : PICKLE_ADDITEMS;
    pickle_op(writer->pickle, is_dict ? '}' : value_kind(v) == VALUE_LIST ? ']' : 0x8f);
    torch_remember(writer, v);
    for (size_t i = 0; i < count && !writer->status; i++) {
        pickle_item(writer->pickle, i, count, batch);
        if (is_dict) {
            torch_write_dict_key(writer, values_items(values, v)[2 * i]);
            torch_write_value(writer, values_items(values, v)[2 * i + 1]);
        } else {
            torch_write_value(writer, values_items(values, v)[i]);
        }
    }
    pickle_items_end(writer->pickle, count, batch);
}

/* Tuples and frozen sets exist only when their items do. */
static void torch_write_closed(struct torch_writer *writer, value v)
{
    const struct values *values = writer->snapshot->values;
    size_t count = values_count(values, v);
    bool is_tuple = value_kind(v) == VALUE_TUPLE;
    if (is_tuple && count == 0) {
        pickle_op(writer->pickle, ')');
        return;
    }
    bool has_mark = !is_tuple || count > 3;
    if (has_mark)
        pickle_op(writer->pickle, '(');
    for (size_t i = 0; i < count && !writer->status; i++)
        torch_write_value(writer, values_items(values, v)[i]);
    if (table_has(&writer->objects, v)) { /* one of its items contains it */
        for (size_t i = 0; i < count && !has_mark; i++)
            pickle_op(writer->pickle, '0');
        if (has_mark)
            pickle_op(writer->pickle, '1');
        torch_written(writer, v);
        return;
    }
    pickle_op(writer->pickle, !is_tuple ? 0x91 : has_mark ? 't' : (unsigned char)(0x84 + count));
    torch_remember(writer, v);
}

static void torch_write_container(struct torch_writer *writer, value v)
{
    if (torch_written(writer, v))
        return;
    if (writer->depth >= DEPTH_MOST) {
        torch_write_fail(writer, STATUS_OUTPUT, "nested too deeply for a pickle");
        return;
    }
    writer->depth++;
    if (value_kind(v) == VALUE_TUPLE || value_kind(v) == VALUE_FROZENSET)
        torch_write_closed(writer, v);
    else
        torch_write_open(writer, v);
    writer->depth--;
}

static void torch_write_blob(struct torch_writer *writer, value v)
{
    size_t length;
    if (torch_written(writer, v))
        return;
    const unsigned char *bytes = values_get_bytes(writer->snapshot->values, v, &length);
    if (value_kind(v) == VALUE_BYTES)
        pickle_write_bytes(writer->pickle, bytes, length);
    else
        pickle_write_bytearray(writer->pickle, bytes, length);
    torch_remember(writer, v);
}

void torch_write_value(struct torch_writer *writer, value v)
{
    const struct values *values = writer->snapshot->values;
    size_t length;
    const unsigned char *bytes;
    int64_t number;
    switch (value_kind(v)) {
    case VALUE_NONE:
        pickle_op(writer->pickle, 'N');
        break;
    case VALUE_FALSE:
    case VALUE_TRUE:
        pickle_write_bool(writer->pickle, value_kind(v) == VALUE_TRUE);
        break;
    case VALUE_INT:
        values_get_int(values, v, &number);
        pickle_write_int(writer->pickle, number);
        break;
    case VALUE_LONG:
        bytes = values_long_bytes(values, v, &length);
        pickle_write_long(writer->pickle, bytes, length);
        break;
    case VALUE_FLOAT:
        pickle_write_float(writer->pickle, values_get_float(values, v));
        break;
    case VALUE_STRING:
        if (writer->snapshot->has_raw && value_payload(v) < NONE32)
            torch_write_word(writer, (uint32_t)value_payload(v));
        else
            torch_write_object(writer, value_payload(v) < NONE32 ? (uint32_t)value_payload(v) : NONE32);
        break;
    case VALUE_BYTES:
    case VALUE_BYTEARRAY:
        torch_write_blob(writer, v);
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
    case VALUE_SET:
    case VALUE_FROZENSET:
        torch_write_container(writer, v);
        break;
    case VALUE_ROW:
        if (value_row_kind(v) < ROW_KIND_COUNT)
            torch_write_row(writer, (enum row_kind)value_row_kind(v), value_row_number(v));
        else
            torch_write_fail(writer, STATUS_OUTPUT, "a value points at nothing");
        break;
    default:
        torch_write_fail(writer, STATUS_OUTPUT, "a value is no data");
        break;
    }
}
