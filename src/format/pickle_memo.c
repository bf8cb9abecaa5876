/*
 * The machine's window over the input, its memory check and its memo.  Uses base and snapshot.
 */
#include "format/pickle_machine.h"

#include "base/array.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WINDOW = 64 * 1024, WINDOW_MOST = 256 * 1024, SLACK_MIB = 44 };
enum { TABLE_SLOT = 39 }; /* 13 bytes, and while a table grows it is there with one of twice the size */

int pickle_fail(struct pickle *pickle, struct error *err, const char *format, ...)
{
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return error_at(err, STATUS_INPUT, pickle->op_offset, "%s", message);
}

/* ---- the window ---- */

int pickle_refill(struct pickle *pickle, size_t want, struct error *err)
{
    if (pickle->window) {
        size_t used = (size_t)(pickle->at - pickle->window);
        input_skip(pickle->input, used);
        pickle->window_offset += used;
    }
    const unsigned char *bytes = NULL;
    size_t available = 0;
    int status = input_peek(pickle->input, want, &bytes, &available, err);
    if (status)
        return status;
    pickle->at_end = available < want;
    pickle->window = pickle->at = bytes;
    pickle->end = bytes + (available < WINDOW_MOST ? available : WINDOW_MOST); /* memory is checked between windows */
    return pickle_check_memory(pickle, err);
}

int pickle_check_memory(struct pickle *pickle, struct error *err)
{
    uint64_t offset = pickle_offset(pickle);
    if (offset - pickle->checked_at < WINDOW / 2 && offset >= pickle->checked_at)
        return 0;
    pickle->checked_at = offset;
    const struct snapshot *snapshot = pickle->snapshot;
    uint64_t held = pickle->stack_capacity * sizeof(value) + pickle->memo_size * sizeof(uint32_t) +
                    pickle->sparse_memo.capacity * TABLE_SLOT + pickle->wide_capacity * sizeof(value) +
                    values_bytes_held(pickle->values) + pickle->string_bytes + pickle->scratch.capacity +
                    strings_count(snapshot->strings) * UINT64_C(32) +
                    snapshot->string_object_count * sizeof(uint32_t) + snapshot->frame_count * sizeof(struct frame) +
                    snapshot->stack_count * sizeof(struct stack_node) + snapshot->stack_index.capacity * TABLE_SLOT +
                    snapshot->context_count * sizeof(uint32_t) + snapshot->odd_count * sizeof(struct odd) +
                    snapshot->odd_index.capacity * TABLE_SLOT;
    if (pickle->hooks && pickle->hooks->held)
        held += pickle->hooks->held(pickle->context);
    if (held <= 2 * offset + ((uint64_t)SLACK_MIB << 20))
        return 0;
    char text[SIZE_TEXT];
    return error_at(err, STATUS_NO_MEMORY, offset,
                    "the bytes so far describe more than twice their size in memory (%s): no snapshot does that",
                    size_format(held, text));
}

/* Bytes of an opcode's fixed part. */
int pickle_need(struct pickle *pickle, size_t count, struct error *err)
{
    if ((size_t)(pickle->end - pickle->at) >= count)
        return 0;
    int status = pickle_refill(pickle, count, err);
    if (!status && (size_t)(pickle->end - pickle->at) < count)
        status = error_at(err, STATUS_INPUT, pickle->window_offset + (uint64_t)(pickle->end - pickle->window),
                          "cut short: the pickle ends in the middle of an opcode");
    return status;
}

int pickle_read_exactly(struct pickle *pickle, void *to, size_t length, struct error *err)
{
    size_t left = (size_t)(pickle->end - pickle->at);
    if (length <= left) {
        if (length > 0)
            memcpy(to, pickle->at, length);
        pickle->at += length;
        return 0;
    }
    input_skip(pickle->input, (size_t)(pickle->at - pickle->window));
    int status = input_read(pickle->input, to, length, "a value", err);
    pickle->window = pickle->at = pickle->end = NULL;
    pickle->window_offset = input_offset(pickle->input);
    return status;
}

/* ---- the memo ---- */

static value pickle_decode(const struct pickle *pickle, uint32_t code)
{
    uint32_t payload = code & PICKLE_CODE_PAYLOAD;
    switch ((enum pickle_code)(code >> PICKLE_CODE_SHIFT)) {
    case PICKLE_CODE_UNSET:
        break;
    case PICKLE_CODE_STRING:
        return value_make(VALUE_STRING, payload);
    case PICKLE_CODE_CONTAINER:
        return values_word(pickle->values, payload);
    case PICKLE_CODE_ENTRY:
        return value_row(ROW_ENTRY, payload);
    case PICKLE_CODE_CONTEXT:
        return value_row(ROW_CONTEXT, payload);
    case PICKLE_CODE_FRAME:
        return value_row(ROW_FRAME, payload);
    case PICKLE_CODE_ENTRY_POOL:
        return value_row(PICKLE_ROW_ENTRY_POOL, payload);
    case PICKLE_CODE_WIDE:
        return pickle->wide[payload];
    }
    return value_make(VALUE_MARK, PICKLE_FAILED_WORD);
}

static uint32_t pickle_encode(struct pickle *pickle, value object)
{
    uint64_t payload = value_kind(object) == VALUE_ROW ? value_row_number(object) : value_payload(object);
    if (payload <= PICKLE_CODE_PAYLOAD) {
        if (value_kind(object) == VALUE_STRING)
            return pickle_code(PICKLE_CODE_STRING, (uint32_t)payload);
        if (value_is_container(object))
            return pickle_code(PICKLE_CODE_CONTAINER, (uint32_t)payload);
        if (value_kind(object) == VALUE_ROW && value_row_kind(object) == ROW_ENTRY)
            return pickle_code(PICKLE_CODE_ENTRY, (uint32_t)payload);
        if (value_kind(object) == VALUE_ROW && value_row_kind(object) == ROW_CONTEXT)
            return pickle_code(PICKLE_CODE_CONTEXT, (uint32_t)payload);
        if (value_kind(object) == VALUE_ROW && value_row_kind(object) == ROW_FRAME)
            return pickle_code(PICKLE_CODE_FRAME, (uint32_t)payload);
        if (value_kind(object) == VALUE_ROW && value_row_kind(object) == PICKLE_ROW_ENTRY_POOL)
            return pickle_code(PICKLE_CODE_ENTRY_POOL, (uint32_t)payload);
    }
    if (pickle->wide_count >= PICKLE_CODE_PAYLOAD ||
        array_reserve(&pickle->wide, &pickle->wide_capacity, pickle->wide_count + 1, sizeof(*pickle->wide)))
        return 0;
    pickle->wide[pickle->wide_count] = object;
    return pickle_code(PICKLE_CODE_WIDE, (uint32_t)pickle->wide_count++);
}

static uint32_t pickle_memo_code(const struct pickle *pickle, uint64_t number)
{
    if (number < pickle->memo_size && pickle->memo[number])
        return pickle->memo[number];
    return pickle->sparse_memo.count ? table_get(&pickle->sparse_memo, number, 0) : 0;
}

value pickle_memo_get(const struct pickle *pickle, uint64_t number)
{
    return pickle_decode(pickle, pickle_memo_code(pickle, number));
}

static int pickle_memo_store(struct pickle *pickle, uint64_t number, uint32_t code)
{
    /* The array may run ahead of what is set by as much again; numbers further out cost a table slot each. */
    if (number < pickle->memo_size || number <= pickle->memo_set * 2 + 4096) {
        if (array_reserve(&pickle->memo, &pickle->memo_capacity, (size_t)number + 1, sizeof(*pickle->memo)))
            return STATUS_NO_MEMORY;
        if (number >= pickle->memo_size) {
            memset(pickle->memo + pickle->memo_size, 0, (size_t)(number - pickle->memo_size) * sizeof(*pickle->memo));
            pickle->memo_size = (size_t)number + 1;
        }
        pickle->memo[number] = code;
        return 0;
    }
    return table_set(&pickle->sparse_memo, number, code);
}

int pickle_memo_replace(struct pickle *pickle, uint64_t number, value object, struct error *err)
{
    uint32_t code = pickle_encode(pickle, object);
    return code && !pickle_memo_store(pickle, number, code) ? 0 : error_no_memory(err);
}

int pickle_memo_put(struct pickle *pickle, uint64_t number, value object, struct error *err)
{
    uint32_t before = pickle_memo_code(pickle, number);
    struct value_notes *notes;
    if (before) {
        pickle->memo_replaced = true;
        notes = values_notes(pickle->values, pickle_decode(pickle, before));
        if (notes) { /* its note would name the number of another object */
            notes->flags |= PICKLE_FETCHED;
            notes->memo = 0;
        }
    } else {
        pickle->memo_set++;
    }
    if (value_is_container(object) && (notes = values_notes(pickle->values, object)) != NULL) {
        if (notes->memo || number >= UINT32_MAX)
            notes->flags |= PICKLE_FETCHED;
        else
            notes->memo = (uint32_t)number + 1;
    }
    return pickle_memo_replace(pickle, number, object, err);
}

int pickle_put(struct pickle *pickle, uint64_t number, struct error *err)
{
    if (pickle->depth == 0 || pickle->stack[pickle->depth - 1] == value_make(VALUE_MARK, PICKLE_MARK))
        return pickle_fail(pickle, err, "damaged pickle: nothing to remember");
    return pickle_memo_put(pickle, number, pickle->stack[pickle->depth - 1], err);
}

void pickle_named_again(struct pickle *pickle, value object)
{
    if (value_is_container(object)) {
        struct value_notes *notes = values_notes(pickle->values, object);
        if (notes && object != pickle->empty_tuple)
            notes->flags |= PICKLE_FETCHED;
    } else if (value_kind(object) == VALUE_ROW && value_row_kind(object) != ROW_CONTEXT &&
               value_row_kind(object) != ROW_FRAME && value_row_kind(object) < PICKLE_ROW_ENTRY_POOL) {
        pickle->row_fetched = true;
    }
}

int pickle_get(struct pickle *pickle, uint64_t number, struct error *err)
{
    value object = pickle_memo_get(pickle, number);
    if (object == value_make(VALUE_MARK, PICKLE_FAILED_WORD))
        return pickle_fail(pickle, err, "damaged pickle: memo number %" PRIu64 " was never set", number);
    if (value_kind(object) != VALUE_STRING)
        pickle_named_again(pickle, object);
    return pickle_push(pickle, object) ? error_no_memory(err) : 0;
}

int pickle_packed(struct pickle *pickle, value container, value row, struct error *err)
{
    struct value_notes *notes = values_notes(pickle->values, container);
    if (!notes)
        return pickle_fail(pickle, err, "damaged pickle: an object is used after its end");
    if (notes->memo && pickle_memo_replace(pickle, notes->memo - 1, row, err))
        return STATUS_NO_MEMORY;
    if (notes->flags & PICKLE_FETCHED) {
        notes->flags |= PICKLE_PACKED;
        notes->row = (uint32_t)value_row_number(row) + 1;
        values_clear(pickle->values, container);
    } else {
        values_release(pickle->values, container);
    }
    return 0;
}
