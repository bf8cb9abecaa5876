/*
 * The machine's core: the stack and the loop over opcodes.  The window over the input and the memo are in
 * pickle_memo.c, what opcodes carry (strings, numbers, lines) in pickle_data.c, the harmless classes in pickle_class.c.  Uses base and snapshot.
 */
#include "format/pickle_read.h"

#include "base/array.h"
#include "format/pickle_machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64 * 1024, OPCODE_MOST = 16 };

/* ---- the stack ---- */

int pickle_push_slow(struct pickle *pickle, value word)
{
    int status = array_reserve(&pickle->stack, &pickle->stack_capacity, pickle->depth + 1, sizeof(*pickle->stack));
    if (!status)
        pickle->stack[pickle->depth++] = word;
    return status;
}

int pickle_push_made(struct pickle *pickle, value word, struct error *err)
{
    if (word == value_make(VALUE_MARK, PICKLE_FAILED_WORD) || pickle_push(pickle, word))
        return error_no_memory(err);
    return 0;
}

static int pickle_underflow(struct pickle *pickle, struct error *err)
{
    return pickle_fail(pickle, err, "damaged pickle: its stack has run empty");
}

/* At least count words above the last mark. */
static bool pickle_has(const struct pickle *pickle, size_t count)
{
    size_t floor = pickle->mark_count ? pickle->marks[pickle->mark_count - 1] + 1 : 0;
    return pickle->depth >= floor + count;
}

static int pickle_mark(struct pickle *pickle, struct error *err)
{
    if (pickle->mark_count >= 4 * PICKLE_DEPTH)
        return pickle_fail(pickle, err, "nested more than %d deep: no snapshot is", 4 * PICKLE_DEPTH);
    if (array_reserve(&pickle->marks, &pickle->mark_capacity, pickle->mark_count + 1, sizeof(*pickle->marks)))
        return error_no_memory(err);
    pickle->marks[pickle->mark_count++] = pickle->depth;
    return pickle_push_made(pickle, value_make(VALUE_MARK, PICKLE_MARK), err);
}

/* Take the last mark off; items are what stood above it (they stay in place until the next push). */
static int pickle_pop_mark(struct pickle *pickle, bool is_appended, size_t *mark, struct error *err)
{
    if (!pickle->mark_count)
        return pickle_fail(pickle, err, "damaged pickle: a batch ends that never began");
    *mark = pickle->marks[--pickle->mark_count];
    if (pickle->handed != *mark + 1)
        return 0;
    pickle->handed = 0;
    return is_appended ? 0 : pickle_fail(pickle, err, "damaged pickle: a list's items end as something else");
}

int pickle_append_items(struct pickle *pickle, value container, const value *items, size_t count, struct error *err)
{
    struct value_notes *notes = values_notes(pickle->values, container);
    if (!notes || container == pickle->empty_tuple)
        return pickle_fail(pickle, err, "damaged pickle: something is added to what is no container");
    if (notes->flags & PICKLE_PACKED)
        return pickle_fail(pickle, err, "an object is changed after it was put in its place: no snapshot does that");
    unsigned depth = notes->flags & PICKLE_DEPTH_BITS;
    for (size_t i = 0; i < count; i++) {
        if (value_is_container(items[i])) {
            const struct value_notes *inner = values_notes(pickle->values, items[i]);
            unsigned below = inner ? inner->flags & PICKLE_DEPTH_BITS : 0;
            depth = below + 1 > depth ? below + 1 : depth;
        } else if (value_kind(items[i]) == VALUE_MARK) {
            return pickle_fail(pickle, err, "refuses a class as a value: a snapshot holds plain data only");
        }
    }
    if (depth > PICKLE_DEPTH)
        return pickle_fail(pickle, err, "nested more than %d deep: no snapshot is", PICKLE_DEPTH);
    notes->flags = (uint16_t)((notes->flags & ~PICKLE_DEPTH_BITS) | depth);
    return values_append(pickle->values, container, items, count) ? error_no_memory(err) : 0;
}

value pickle_tuple(struct pickle *pickle, size_t count)
{
    if (count == 0 && pickle->empty_tuple)
        return pickle->empty_tuple;
    value tuple = values_container(pickle->values, VALUE_TUPLE);
    if (count == 0 && value_kind(tuple) == VALUE_TUPLE)
        pickle->empty_tuple = tuple;
    return tuple;
}

/* ---- containers ---- */

static int pickle_store_pairs(struct pickle *pickle, value dict, value *pairs, size_t words, struct error *err)
{
    if (value_kind(dict) != VALUE_DICT || words % 2)
        return pickle_fail(pickle, err, "damaged pickle: keys and values without a dict");
    if (pickle->hooks && pickle->hooks->set_items) {
        int status = pickle->hooks->set_items(pickle->context, pickle, dict, pairs, words, err);
        if (status)
            return status;
    }
    return pickle_append_items(pickle, dict, pairs, words, err);
}

/* Append stack[position + skip ...] to the list at `position`. */
static int pickle_append(struct pickle *pickle, size_t position, size_t first, struct error *err)
{
    value list = pickle->stack[position];
    size_t count = pickle->depth - first;
    bool taken = false;
    if (value_kind(list) != VALUE_LIST)
        return pickle_fail(pickle, err, "damaged pickle: items without a list");
    if (count == 0)
        return 0;
    if (pickle->hooks && pickle->hooks->append) {
        const struct value_notes *notes = values_notes(pickle->values, list);
        if (notes && ((notes->flags & PICKLE_STREAM) || pickle_is_dict(pickle->stack[first]))) {
            int status = pickle->hooks->append(pickle->context, pickle, position, pickle->stack + first, count, &taken,
                                               err);
            if (status)
                return status;
        }
    }
    return taken ? 0 : pickle_append_items(pickle, list, pickle->stack + first, count, err);
}

/* What a batch does to the object below its mark. */
static int pickle_batch(struct pickle *pickle, enum value_kind kind, struct error *err)
{
    size_t mark = 0;
    int status = pickle_pop_mark(pickle, kind == VALUE_LIST, &mark, err);
    if (status)
        return status;
    if (mark == 0)
        return pickle_underflow(pickle, err);
    if (kind == VALUE_DICT)
        status = pickle_store_pairs(pickle, pickle->stack[mark - 1], pickle->stack + mark + 1,
                                    pickle->depth - mark - 1, err);
    else if (kind == VALUE_LIST)
        status = pickle_append(pickle, mark - 1, mark + 1, err);
    else if (value_kind(pickle->stack[mark - 1]) != VALUE_SET)
        status = pickle_fail(pickle, err, "damaged pickle: items without a set");
    else
        status = pickle_append_items(pickle, pickle->stack[mark - 1], pickle->stack + mark + 1,
                                     pickle->depth - mark - 1, err);
    pickle->depth = mark;
    return status;
}

/* A container of what stands above the last mark, in its place. */
static int pickle_make_from_mark(struct pickle *pickle, enum value_kind kind, struct error *err)
{
    size_t mark = 0;
    int status = pickle_pop_mark(pickle, false, &mark, err);
    if (status)
        return status;
    size_t count = pickle->depth - mark - 1;
    value made = kind == VALUE_TUPLE ? pickle_tuple(pickle, count)
                                     : values_container(pickle->values, kind);
    if (made == value_make(VALUE_MARK, PICKLE_FAILED_WORD))
        return error_no_memory(err);
    pickle->stack[mark] = made;
    if (kind == VALUE_LIST)
        status = pickle_append(pickle, mark, mark + 1, err);
    else if (kind == VALUE_DICT)
        status = pickle_store_pairs(pickle, made, pickle->stack + mark + 1, count, err);
    else if (count > 0)
        status = pickle->has_class && kind == VALUE_TUPLE
                     ? (values_append(pickle->values, made, pickle->stack + mark + 1, count) ? error_no_memory(err) : 0)
                     : pickle_append_items(pickle, made, pickle->stack + mark + 1, count, err);
    pickle->depth = mark + 1;
    return status;
}

static int pickle_small_tuple(struct pickle *pickle, size_t count, struct error *err)
{
    if (!pickle_has(pickle, count))
        return pickle_underflow(pickle, err);
    value *items = pickle->stack + pickle->depth - count;
    value made = pickle_tuple(pickle, count);
    if (made == value_make(VALUE_MARK, PICKLE_FAILED_WORD))
        return error_no_memory(err);
    int status = pickle->has_class ? (values_append(pickle->values, made, items, count) ? error_no_memory(err) : 0)
                                   : pickle_append_items(pickle, made, items, count, err);
    pickle->depth -= count;
    return status ? status : pickle_push_made(pickle, made, err);
}

/* One value to a list, or one pair to a dict. */
static int pickle_single(struct pickle *pickle, enum value_kind kind, struct error *err)
{
    size_t words = kind == VALUE_LIST ? 1 : 2;
    if (!pickle_has(pickle, words + 1))
        return pickle_underflow(pickle, err);
    size_t at = pickle->depth - words;
    int status = kind == VALUE_LIST ? pickle_append(pickle, at - 1, at, err)
                                    : pickle_store_pairs(pickle, pickle->stack[at - 1], pickle->stack + at, words, err);
    pickle->depth = at;
    return status;
}

/* A dict begins.  In an open batch of a list that the hooks take from, what stands there is handed over first, so that
 * a batch of millions does not pile up, and then the hooks may read on by themselves.  *done: they read this dict. */
static int pickle_dict_starts(struct pickle *pickle, bool *done, struct error *err)
{
    *done = false;
    if (!pickle->mark_count || !pickle->hooks)
        return 0;
    size_t mark = pickle->marks[pickle->mark_count - 1];
    if (mark == 0 || value_kind(pickle->stack[mark - 1]) != VALUE_LIST)
        return 0;
    const struct value_notes *notes = values_notes(pickle->values, pickle->stack[mark - 1]);
    size_t pending = pickle->depth - mark - 1;
    if (!notes || (pending != 1 && !(notes->flags & PICKLE_STREAM)))
        return 0;
    if (pending) {
        bool taken = false;
        if (!pickle_is_dict(pickle->stack[mark + 1]) && !(notes->flags & PICKLE_STREAM))
            return 0;
        int status = pickle->hooks->append(pickle->context, pickle, mark - 1, pickle->stack + mark + 1, pending, &taken,
                                           err);
        if (status || !taken)
            return status;
        pickle->depth = mark + 1;
    }
    if (notes->flags & PICKLE_STREAM)
        pickle->handed = mark + 1;
    const unsigned char *before = pickle->at;
    uint64_t offset = pickle_offset(pickle);
    int status = pickle->hooks->dict_starts(pickle->context, pickle, mark - 1, err);
    *done = pickle->at != before || pickle_offset(pickle) != offset;
    return status;
}

static int pickle_new(struct pickle *pickle, enum value_kind kind, struct error *err)
{
    return pickle_push_made(pickle, values_container(pickle->values, kind), err);
}

static int pickle_pop(struct pickle *pickle, struct error *err)
{
    if (pickle->depth == 0)
        return pickle_underflow(pickle, err);
    size_t mark;
    if (pickle->mark_count && pickle->marks[pickle->mark_count - 1] == pickle->depth - 1) {
        int status = pickle_pop_mark(pickle, false, &mark, err);
        if (status)
            return status;
    }
    pickle->depth--;
    return 0;
}

static int pickle_dup(struct pickle *pickle, struct error *err)
{
    if (!pickle_has(pickle, 1))
        return pickle_underflow(pickle, err);
    value top = pickle->stack[pickle->depth - 1];
    pickle_named_again(pickle, top);
    return pickle_push_made(pickle, top, err);
}

static int pickle_pop_batch(struct pickle *pickle, struct error *err)
{
    size_t mark = 0;
    int status = pickle_pop_mark(pickle, false, &mark, err);
    if (!status)
        pickle->depth = mark;
    return status;
}

/* ---- opcodes ---- */

static uint64_t little(const unsigned char *bytes, unsigned count)
{
    uint64_t number = 0;
    for (unsigned i = count; i > 0; i--)
        number = number << 8 | bytes[i - 1];
    return number;
}

/* The bytes after an opcode that are always there. */
static unsigned opcode_fixed(unsigned char opcode)
{
    switch (opcode) {
    case 0x80: case 'K': case 'h': case 'q': case 'U': case 'C': case 0x8a: case 0x8c: case 0x82:
        return 1;
    case 'M': case 0x83:
        return 2;
    case 'J': case 'j': case 'r': case 'T': case 'B': case 'X': case 0x8b: case 0x84:
        return 4;
    case 'G': case 0x95: case 0x8d: case 0x8e: case 0x96:
        return 8;
    default:
        return 0;
    }
}

static const char *opcode_refused(unsigned char opcode)
{
    switch (opcode) {
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 0x81: return "NEWOBJ";
    case 0x92: return "NEWOBJ_EX";
    case 'b': return "BUILD";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 'P': return "PERSID";
    case 'Q': return "BINPERSID";
    default: return NULL;
    }
}

static int pickle_refuse(struct pickle *pickle, unsigned char opcode, struct error *err)
{
    const char *name = opcode_refused(opcode);
    if (name)
        return pickle_fail(pickle, err, "refuses the opcode %s: it could run code, and a snapshot is plain data", name);
    if (opcode == 0x97 || opcode == 0x98)
        return pickle_fail(pickle, err, "out-of-band buffers (opcode %s) are not in this file and cannot be read",
                           opcode == 0x97 ? "NEXT_BUFFER" : "READONLY_BUFFER");
    return pickle_fail(pickle, err, "damaged pickle, or none: there is no opcode 0x%02x", opcode);
}

static int pickle_fixed_opcode(struct pickle *pickle, unsigned char opcode, const unsigned char *bytes,
                               struct error *err)
{
    uint64_t number;
    double real;
    switch (opcode) {
    case 0x80:
        if (bytes[0] > 5)
            return error_at(err, STATUS_UNSUPPORTED, pickle->op_offset, "unsupported pickle protocol %u", bytes[0]);
        return 0;
    case 'K':
        return pickle_push_made(pickle, value_make(VALUE_INT, bytes[0]), err);
    case 'M':
        return pickle_push_made(pickle, value_make(VALUE_INT, little(bytes, 2)), err);
    case 'J':
        return pickle_push_made(pickle, value_make(VALUE_INT, (uint64_t)(int64_t)(int32_t)little(bytes, 4)), err);
    case 'h':
        return pickle_get(pickle, bytes[0], err);
    case 'j':
        return pickle_get(pickle, little(bytes, 4), err);
    case 'q':
        return pickle_put(pickle, bytes[0], err);
    case 'r':
        return pickle_put(pickle, little(bytes, 4), err);
    case 'G':
        number = __builtin_bswap64(little(bytes, 8));
        memcpy(&real, &number, sizeof(real));
        return pickle_push_made(pickle, values_float(pickle->values, real), err);
    case 0x95:
        return little(bytes, 8) >> 63 ? pickle_fail(pickle, err, "damaged pickle: a frame of impossible length") : 0;
    case 'U': case 0x8c:
        return pickle_string(pickle, bytes[0], opcode != 'U', err);
    case 'X':
        return pickle_string(pickle, little(bytes, 4), true, err);
    case 'T':
        return bytes[3] >= 0x80 ? pickle_fail(pickle, err, "damaged pickle: a string of negative length")
                                : pickle_string(pickle, little(bytes, 4), false, err);
    case 0x8d:
        return pickle_string(pickle, little(bytes, 8), true, err);
    case 'C':
        return pickle_bytes(pickle, VALUE_BYTES, bytes[0], err);
    case 'B':
        return pickle_bytes(pickle, VALUE_BYTES, little(bytes, 4), err);
    case 0x8e:
        return pickle_bytes(pickle, VALUE_BYTES, little(bytes, 8), err);
    case 0x96:
        return pickle_bytes(pickle, VALUE_BYTEARRAY, little(bytes, 8), err);
    case 0x8a:
        return pickle_long(pickle, bytes[0], err);
    case 0x8b:
        return bytes[3] >= 0x80 ? pickle_fail(pickle, err, "damaged pickle: an integer of negative length")
                                : pickle_long(pickle, little(bytes, 4), err);
    default:
        return pickle_refuse(pickle, opcode, err);
    }
}

static int pickle_stack_global(struct pickle *pickle, struct error *err)
{
    if (!pickle_has(pickle, 2))
        return pickle_underflow(pickle, err);
    value module = pickle->stack[pickle->depth - 2], name = pickle->stack[pickle->depth - 1];
    if (value_kind(module) != VALUE_STRING || value_kind(name) != VALUE_STRING)
        return pickle_fail(pickle, err, "refuses the opcode STACK_GLOBAL: it could run code, and a snapshot is plain data");
    pickle->depth -= 2;
    return pickle_global(pickle, snapshot_object_text(pickle->snapshot, (uint32_t)value_payload(module), NULL),
                         snapshot_object_text(pickle->snapshot, (uint32_t)value_payload(name), NULL), err);
}

static int pickle_opcode(struct pickle *pickle, unsigned char opcode, struct error *err)
{
    switch (opcode) {
    case '(': return pickle_mark(pickle, err);
    case '0': return pickle_pop(pickle, err);
    case '1': return pickle_pop_batch(pickle, err);
    case '2': return pickle_dup(pickle, err);
    case 'N': return pickle_push_made(pickle, value_make(VALUE_NONE, 0), err);
    case 0x88: return pickle_push_made(pickle, value_make(VALUE_TRUE, 0), err);
    case 0x89: return pickle_push_made(pickle, value_make(VALUE_FALSE, 0), err);
    case '}': return pickle_new(pickle, VALUE_DICT, err);
    case ']': return pickle_new(pickle, VALUE_LIST, err);
    case 0x8f: return pickle_new(pickle, VALUE_SET, err);
    case ')': return pickle_push_made(pickle, pickle_tuple(pickle, 0), err);
    case 't': return pickle_make_from_mark(pickle, VALUE_TUPLE, err);
    case 'l': return pickle_make_from_mark(pickle, VALUE_LIST, err);
    case 'd': return pickle_make_from_mark(pickle, VALUE_DICT, err);
    case 0x91: return pickle_make_from_mark(pickle, VALUE_FROZENSET, err);
    case 0x85: return pickle_small_tuple(pickle, 1, err);
    case 0x86: return pickle_small_tuple(pickle, 2, err);
    case 0x87: return pickle_small_tuple(pickle, 3, err);
    case 'a': return pickle_single(pickle, VALUE_LIST, err);
    case 's': return pickle_single(pickle, VALUE_DICT, err);
    case 'e': return pickle_batch(pickle, VALUE_LIST, err);
    case 'u': return pickle_batch(pickle, VALUE_DICT, err);
    case 0x90: return pickle_batch(pickle, VALUE_SET, err);
    case 0x94: return pickle_put(pickle, pickle->memo_set, err);
    case 0x93: return pickle_stack_global(pickle, err);
    case 'R': return pickle_reduce(pickle, err);
    case 'I': case 'L': case 'F': case 'S': case 'V': case 'c':
        return pickle_text_opcode(pickle, opcode, err);
    case 'g': case 'p': {
        int status = pickle_line(pickle, err);
        uint64_t number = 0;
        const char *digits = text_string(&pickle->scratch);
        for (size_t i = 0; !status && i < pickle->scratch.length; i++)
            if (digits[i] < '0' || digits[i] > '9' || __builtin_mul_overflow(number, (uint64_t)10, &number) ||
                __builtin_add_overflow(number, (uint64_t)(digits[i] - '0'), &number))
                status = pickle_fail(pickle, err, "damaged pickle: a memo number that is none");
        if (!status && !pickle->scratch.length)
            status = pickle_fail(pickle, err, "damaged pickle: a memo number that is none");
        return status ? status : opcode == 'g' ? pickle_get(pickle, number, err) : pickle_put(pickle, number, err);
    }
    default:
        return pickle_refuse(pickle, opcode, err);
    }
}

static int pickle_run(struct pickle *pickle, value *result, struct error *err)
{
    for (;;) {
        if (__builtin_expect(pickle->end - pickle->at < OPCODE_MOST, 0) && !pickle->at_end) {
            int status = pickle_refill(pickle, WINDOW, err);
            if (status)
                return status;
        }
        pickle->op_offset = pickle_offset(pickle);
        if (pickle->at == pickle->end)
            return error_at(err, STATUS_INPUT, pickle->op_offset, "cut short: the pickle ends before its STOP");
        unsigned char opcode = *pickle->at;
        int status = 0;
        bool done = false;
        if (opcode == '}' && (status = pickle_dict_starts(pickle, &done, err)) != 0)
            return status;
        if (done)
            continue;
        pickle->at++;
        if (opcode == '.')
            break;
        unsigned fixed = opcode_fixed(opcode);
        if (fixed) {
            status = pickle_need(pickle, fixed, err);
            if (status)
                return status;
            const unsigned char *bytes = pickle->at;
            pickle->at += fixed;
            status = pickle_fixed_opcode(pickle, opcode, bytes, err);
        } else {
            status = pickle_opcode(pickle, opcode, err);
        }
        if (status)
            return status;
    }
    if (pickle->depth != 1 || value_kind(pickle->stack[0]) == VALUE_MARK)
        return pickle_fail(pickle, err, "damaged pickle: %s at its end", pickle->depth ? "things are left over" : "nothing");
    *result = pickle->stack[0];
    return 0;
}

int pickle_read(struct input *input, struct snapshot *snapshot, const struct pickle_hooks *hooks, void *context,
                value *result, struct error *err)
{
    struct pickle *pickle = calloc(1, sizeof(*pickle));
    if (!pickle)
        return error_no_memory(err);
    pickle->input = input;
    pickle->snapshot = snapshot;
    pickle->values = snapshot->values;
    pickle->hooks = hooks;
    pickle->context = context;
    pickle->window_offset = pickle->checked_at = input_offset(input);
    for (size_t i = 0; i < PICKLE_STRING_CACHE; i++)
        pickle->strings[i].text = "";
    int status = pickle_run(pickle, result, err);
    if (pickle->window)
        input_skip(input, (size_t)(pickle->at - pickle->window));
    if (!status)
        status = input_check_end(input, err);
    if (!status && hooks && hooks->finish)
        status = hooks->finish(context, pickle, *result, err);
    free(pickle->stack);
    free(pickle->marks);
    free(pickle->memo);
    free(pickle->wide);
    table_free(&pickle->sparse_memo);
    text_free(&pickle->scratch);
    free(pickle);
    return status;
}

/* The opcodes that a snapshot's pickle of protocols 0 and 1 can start with: a dict or list, empty or from a mark. */
bool pickle_is_pickle(const unsigned char *start, size_t length)
{
    if (length >= 2 && start[0] == 0x80)
        return start[1] > 0 && start[1] < 32; /* also newer ones, so that they are refused by number */
    if (length >= 2 && start[0] == '(')
        return start[1] == 'd' || start[1] == 'l' || start[1] == 't';
    if (length >= 2 && (start[0] == '}' || start[0] == ']'))
        return start[1] == 'q' || start[1] == '.' || start[1] == '(' || start[1] == 0x94;
    return length >= 3 && start[0] == 'c' && start[1] >= '_' && start[1] <= 'z' && memchr(start, '\n', length) != NULL;
}
