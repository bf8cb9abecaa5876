/*
 * The harmless classes: names that pickles of plain data carry, understood here as the data they stand for.  Nothing is
 * imported and nothing is called.  Every other name is refused.  Uses base and snapshot.
 */
#include "base/text.h"
#include "format/pickle_machine.h"

#include <string.h>

enum class { /* CLASS_FACTORY may only stand as a defaultdict's factory */
    CLASS_DICT,
    CLASS_DEFAULT_DICT,
    CLASS_SIZE,
    CLASS_SET,
    CLASS_FROZENSET,
    CLASS_BYTES,
    CLASS_BYTEARRAY,
    CLASS_ENCODE,
    CLASS_FACTORY,
};

static const struct {
    const char *module, *name;
    enum class class;
} classes[] = {
    {"collections", "OrderedDict", CLASS_DICT},   {"collections", "defaultdict", CLASS_DEFAULT_DICT},
    {"torch", "Size", CLASS_SIZE},                {"_codecs", "encode", CLASS_ENCODE},
    {"builtins", "set", CLASS_SET},               {"__builtin__", "set", CLASS_SET},
    {"builtins", "frozenset", CLASS_FROZENSET},   {"__builtin__", "frozenset", CLASS_FROZENSET},
    {"builtins", "bytes", CLASS_BYTES},           {"__builtin__", "bytes", CLASS_BYTES},
    {"builtins", "bytearray", CLASS_BYTEARRAY},   {"__builtin__", "bytearray", CLASS_BYTEARRAY},
    {"builtins", "list", CLASS_FACTORY},          {"__builtin__", "list", CLASS_FACTORY},
    {"builtins", "dict", CLASS_FACTORY},          {"__builtin__", "dict", CLASS_FACTORY},
    {"builtins", "int", CLASS_FACTORY},           {"__builtin__", "int", CLASS_FACTORY},
    {"builtins", "float", CLASS_FACTORY},         {"__builtin__", "float", CLASS_FACTORY},
    {"builtins", "str", CLASS_FACTORY},           {"__builtin__", "str", CLASS_FACTORY},
    {"builtins", "tuple", CLASS_FACTORY},         {"__builtin__", "tuple", CLASS_FACTORY},
    {"builtins", "bool", CLASS_FACTORY},          {"__builtin__", "bool", CLASS_FACTORY},
};

static size_t shown(const char *text)
{
    return strnlen(text, 60);
}

int pickle_global(struct pickle *pickle, const char *module, const char *name, struct error *err)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strcmp(classes[i].module, module) == 0 && strcmp(classes[i].name, name) == 0) {
            pickle->has_class = true;
            return pickle_push_made(pickle, value_make(VALUE_MARK, PICKLE_CLASS + (uint64_t)classes[i].class), err);
        }
    }
    struct text text = {0};
    text_add_printable(&text, module, shown(module));
    text_char(&text, '.');
    text_add_printable(&text, name, shown(name));
    int status = pickle_fail(pickle, err, "refuses GLOBAL %s: a pickle that names code is not opened", text_string(&text));
    text_free(&text);
    return status;
}

static int pickle_bad_call(struct pickle *pickle, struct error *err)
{
    return pickle_fail(pickle, err, "refuses the opcode REDUCE: it could run code, and a snapshot is plain data");
}

/* OrderedDict's pairs, as Python 2 and some protocols spell them: a list of lists or tuples of two. */
static int pickle_fill_dict(struct pickle *pickle, value dict, value list, struct error *err)
{
    for (size_t i = 0; i < values_count(pickle->values, list); i++) {
        value pair = values_items(pickle->values, list)[i];
        if ((value_kind(pair) != VALUE_LIST && value_kind(pair) != VALUE_TUPLE) || values_count(pickle->values, pair) != 2)
            return pickle_bad_call(pickle, err);
        value words[2];
        memcpy(words, values_items(pickle->values, pair), sizeof(words));
        int status = pickle_append_items(pickle, dict, words, 2, err);
        if (status)
            return status;
    }
    return 0;
}

static int pickle_call_container(struct pickle *pickle, enum class class, const value *items, size_t count, value *made,
                                 struct error *err)
{
    enum value_kind kind = class == CLASS_SET ? VALUE_SET : class == CLASS_FROZENSET ? VALUE_FROZENSET : VALUE_DICT;
    value list = count ? items[0] : value_make(VALUE_NONE, 0);
    if (class == CLASS_DEFAULT_DICT) { /* its only argument is the factory */
        if (count > 1 || (count == 1 && value_kind(list) != VALUE_NONE && value_kind(list) != VALUE_MARK))
            return pickle_bad_call(pickle, err);
        count = 0;
    }
    if (count > 1 || (count == 1 && value_kind(list) != VALUE_LIST && value_kind(list) != VALUE_TUPLE))
        return pickle_bad_call(pickle, err);
    *made = values_container(pickle->values, kind);
    if (value_kind(*made) != kind)
        return error_no_memory(err);
    if (count == 0)
        return 0;
    if (kind == VALUE_DICT)
        return pickle_fill_dict(pickle, *made, list, err);
    struct text copy = {0}; /* an append may move the list's own items */
    size_t words = values_count(pickle->values, list);
    text_append(&copy, words ? (const char *)values_items(pickle->values, list) : "", words * sizeof(value));
    int status = text_failed(&copy) ? error_no_memory(err)
                                    : pickle_append_items(pickle, *made, (const value *)(const void *)copy.bytes, words, err);
    text_free(&copy);
    return status;
}

/* The bytes that a string of Latin-1 characters spells. */
static int pickle_latin1(struct pickle *pickle, value string, struct text *bytes, struct error *err)
{
    size_t length;
    const char *at = snapshot_object_text(pickle->snapshot, (uint32_t)value_payload(string), &length), *end = at + length;
    while (at < end) {
        unsigned char c = (unsigned char)*at++;
        if (c >= 0x80) {
            if (c > 0xc3 || at == end)
                return pickle_bad_call(pickle, err);
            c = (unsigned char)((c & 3) << 6 | ((unsigned char)*at++ & 0x3f));
        }
        text_char(bytes, (char)c);
    }
    return text_failed(bytes) ? error_no_memory(err) : 0;
}

static int pickle_call_bytes(struct pickle *pickle, enum class class, const value *items, size_t count, value *made,
                             struct error *err)
{
    enum value_kind kind = class == CLASS_BYTEARRAY ? VALUE_BYTEARRAY : VALUE_BYTES;
    struct text text = {0};
    int status = 0;
    if (count == 1 && value_kind(items[0]) == VALUE_BYTES) {
        size_t length;
        const unsigned char *bytes = values_get_bytes(pickle->values, items[0], &length);
        text_append(&text, (const char *)bytes, length);
    } else if (count == 2 && value_kind(items[0]) == VALUE_STRING && value_kind(items[1]) == VALUE_STRING) {
        const char *encoding = snapshot_object_text(pickle->snapshot, (uint32_t)value_payload(items[1]), NULL);
        status = strcmp(encoding, "latin1") == 0 || strcmp(encoding, "latin-1") == 0
                     ? pickle_latin1(pickle, items[0], &text, err)
                     : pickle_bad_call(pickle, err);
    } else if (count > 0) {
        status = pickle_bad_call(pickle, err);
    }
    if (!status)
        *made = values_bytes(pickle->values, kind, text.length ? text.bytes : "", text.length);
    text_free(&text);
    return status;
}

int pickle_reduce(struct pickle *pickle, struct error *err)
{
    size_t floor = pickle->mark_count ? pickle->marks[pickle->mark_count - 1] + 1 : 0;
    if (pickle->depth < floor + 2)
        return pickle_fail(pickle, err, "damaged pickle: its stack has run empty");
    value callable = pickle->stack[pickle->depth - 2], arguments = pickle->stack[pickle->depth - 1];
    if (value_kind(callable) != VALUE_MARK || value_payload(callable) < PICKLE_CLASS ||
        value_kind(arguments) != VALUE_TUPLE)
        return pickle_bad_call(pickle, err);
    enum class class = (enum class)(value_payload(callable) - PICKLE_CLASS);
    size_t count = values_count(pickle->values, arguments);
    value items[2] = {0, 0}, made = value_make(VALUE_MARK, PICKLE_FAILED_WORD);
    if (count > 2)
        return pickle_bad_call(pickle, err);
    if (count > 0)
        memcpy(items, values_items(pickle->values, arguments), count * sizeof(*items));
    int status;
    if (class <= CLASS_DEFAULT_DICT || class == CLASS_SET || class == CLASS_FROZENSET) {
        status = pickle_call_container(pickle, class, items, count, &made, err);
    } else if (class == CLASS_SIZE && count == 1 && value_kind(items[0]) == VALUE_TUPLE) {
        made = items[0];
        status = 0;
    } else if (class >= CLASS_BYTES && class <= CLASS_ENCODE) {
        status = pickle_call_bytes(pickle, class, items, count, &made, err);
    } else {
        status = pickle_bad_call(pickle, err);
    }
    pickle->depth -= 2;
    return status ? status : pickle_push_made(pickle, made, err);
}
