/*
 * The fast path over trace entries as picklers write them: dict, mark, memo reference to a key, value, ..., SETITEMS.
 * It does what the machine would do with the same opcodes, straight into the columns.  Anything out of the ordinary is
 * left to the machine: the entry is undone and read again from its first byte.  Uses base and snapshot.
 *
 * A key is a memo number.  Which field it names is remembered for each place in the dict, from the entry before.
 */
#include "base/array.h"
#include "format/torch_pack.h"

#include <stdlib.h>
#include <string.h>

enum { FAST_WINDOW = 4096, FAST_MARGIN = 40, FAST_MEMO_ROOM = 64 };

struct fast {
    struct torch_reader *reader;
    struct pickle *pickle;
    const unsigned char *at, *limit; /* an opcode and its fixed bytes may be read at any place before limit */
    struct entry entry;
    uint32_t stream;
    uint64_t fields;      /* the shape: 5 bits a slot */
    uint32_t seen;        /* a bit a field */
    uint32_t slots;
};

/* The memo number that a GET at `at` names; false if it is no GET. */
static inline bool fast_get(struct fast *fast, uint32_t *number)
{
    const unsigned char *at = fast->at;
    if (at[0] == 'h') {
        *number = at[1];
        fast->at = at + 2;
        return true;
    }
    if (at[0] != 'j')
        return false;
    memcpy(number, at + 1, sizeof(*number));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    *number = __builtin_bswap32(*number);
#endif
    fast->at = at + 5;
    return true;
}

static inline uint32_t fast_code(const struct fast *fast, uint32_t number)
{
    return number < fast->pickle->memo_size ? fast->pickle->memo[number] : 0;
}

/* MEMOIZE or a PUT of the next number, if there is one: the object's code goes into the memo. */
static inline bool fast_memoize(struct fast *fast, uint32_t code)
{
    struct pickle *pickle = fast->pickle;
    uint32_t number;
    if (fast->at[0] == 0x94) {
        fast->at++;
    } else if (fast->at[0] == 'q' || fast->at[0] == 'r') {
        number = fast->at[1];
        if (fast->at[0] == 'r')
            number |= (uint32_t)fast->at[2] << 8 | (uint32_t)fast->at[3] << 16 | (uint32_t)fast->at[4] << 24;
        if (number != pickle->memo_size)
            return false;
        fast->at += fast->at[0] == 'q' ? 2 : 5;
    } else {
        return true;
    }
    pickle->memo[pickle->memo_size++] = code;
    pickle->memo_set++;
    return true;
}

static inline bool fast_integer(struct fast *fast, int64_t *number)
{
    const unsigned char *at = fast->at;
    switch (at[0]) {
    case 'K':
        *number = at[1];
        fast->at = at + 2;
        return true;
    case 'M':
        *number = at[1] | at[2] << 8;
        fast->at = at + 3;
        return true;
    case 'J':
        *number = (int32_t)(at[1] | (uint32_t)at[2] << 8 | (uint32_t)at[3] << 16 | (uint32_t)at[4] << 24);
        fast->at = at + 5;
        return true;
    case 0x8a: {
        unsigned length = at[1];
        uint64_t bits;
        if (length == 0 || length > 8)
            return false;
        memcpy(&bits, at + 2, sizeof(bits));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bits = __builtin_bswap64(bits);
#endif
        unsigned unused = 64 - 8 * length;
        *number = (int64_t)(bits << unused) >> unused;
        fast->at = at + 2 + length;
        return true;
    }
    default:
        return false;
    }
}

static inline bool fast_string(struct fast *fast, uint32_t *object)
{
    uint32_t number, length;
    const unsigned char *at = fast->at;
    if (fast_get(fast, &number)) {
        uint32_t code = fast_code(fast, number);
        *object = code & PICKLE_CODE_PAYLOAD;
        return code >> PICKLE_CODE_SHIFT == PICKLE_CODE_STRING;
    }
    if (at[0] == 0x8c) {
        length = at[1];
        at += 2;
    } else if (at[0] == 'X') {
        length = at[1] | (uint32_t)at[2] << 8 | (uint32_t)at[3] << 16 | (uint32_t)at[4] << 24;
        at += 5;
    } else {
        return false;
    }
    if (at >= fast->limit || length > (size_t)(fast->limit - at))
        return false;
    uint32_t content = pickle_content(fast->pickle, (const char *)at, length);
    if (content == NONE32)
        return false;
    struct snapshot *snapshot = fast->reader->snapshot;
    if (snapshot->string_object_count < snapshot->string_object_capacity) {
        *object = (uint32_t)snapshot->string_object_count++;
        snapshot->string_objects[*object] = content;
    } else {
        *object = snapshot_string_object(snapshot, content);
    }
    fast->at = at + length;
    return *object <= PICKLE_CODE_PAYLOAD && fast_memoize(fast, pickle_code(PICKLE_CODE_STRING, *object));
}

static bool fast_action(struct fast *fast)
{
    uint32_t number;
    if (!fast_get(fast, &number))
        return false;
    uint32_t code = fast_code(fast, number);
    if (code >> PICKLE_CODE_SHIFT != PICKLE_CODE_STRING)
        return false;
    struct torch_reader *reader = fast->reader;
    uint32_t content = reader->snapshot->string_objects[code & PICKLE_CODE_PAYLOAD];
    uint32_t action = content - reader->first_word - TORCH_WORD_ACTIONS;
    fast->entry.action = (enum action)action;
    return action < ACTION_OTHER;
}

static bool fast_stream(struct fast *fast)
{
    struct torch_reader *reader = fast->reader;
    int64_t stream;
    if (!fast_integer(fast, &stream))
        return false;
    if (stream != reader->last_stream || reader->last_stream_index == NONE32) {
        reader->last_stream = stream;
        reader->last_stream_index = snapshot_stream(reader->snapshot, stream);
    }
    fast->stream = reader->last_stream_index;
    return fast->stream != NONE32;
}

/* ---- frames ---- */

/* The stack of the frames in reader->frames, innermost first. */
static uint32_t fast_stack(struct torch_reader *reader, size_t count)
{
    uint32_t node = STACK_EMPTY;
    for (size_t i = count; i > 0 && node != NONE32; i--)
        node = snapshot_push_frame(reader->snapshot, node, reader->frames[i - 1]);
    return node;
}

static uint64_t fast_load(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    memcpy(&word, bytes, count);
    return word;
}

/* Two lanes, because a multiplication takes longer than a load. */
static uint64_t fast_hash(const unsigned char *bytes, size_t length)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t a = length, b = ~(uint64_t)length;
    for (; length >= 16; bytes += 16, length -= 16) {
        a = (a ^ fast_load(bytes, 8)) * factor;
        b = (b ^ fast_load(bytes + 8, 8)) * factor;
        a ^= a >> 29;
        b ^= b >> 31;
    }
    if (length > 8) {
        a = (a ^ fast_load(bytes, 8)) * factor;
        bytes += 8;
        length -= 8;
    }
    b = (b ^ fast_load(bytes, length)) * factor;
    return hash_mix(a ^ (b << 32 | b >> 32));
}

/* Keep a run's bytes; when their room is full, everything is forgotten. */
static void fast_keep_run(struct torch_reader *reader, struct torch_run *run, uint64_t hash, const unsigned char *bytes,
                          size_t length, uint32_t stack)
{
    if (!reader->run_bytes)
        reader->run_bytes = malloc(TORCH_RUN_BYTES);
    if (!reader->run_bytes || length > TORCH_RUN_BYTES / 16)
        return;
    if (reader->run_used + length > TORCH_RUN_BYTES) {
        memset(reader->runs, 0, sizeof(reader->runs));
        reader->run_used = 0;
    }
    memcpy(reader->run_bytes + reader->run_used, bytes, length);
    *run = (struct torch_run){hash, (uint32_t)reader->run_used, (uint32_t)length, stack};
    reader->run_used += length;
}

static inline bool fast_frame(struct fast *fast, size_t *count)
{
    uint32_t number;
    if (fast->at >= fast->limit || *count == TORCH_FRAMES || !fast_get(fast, &number))
        return false;
    uint32_t code = fast_code(fast, number);
    fast->reader->frames[(*count)++] = code & PICKLE_CODE_PAYLOAD;
    return code >> PICKLE_CODE_SHIFT == PICKLE_CODE_FRAME;
}

/* A batch of references to frames, up to its APPENDS.  Memo numbers never change their meaning here, so equal bytes are
 * equal stacks. */
static bool fast_run(struct fast *fast, uint32_t *stack)
{
    struct torch_reader *reader = fast->reader;
    const unsigned char *start = fast->at, *end = start;
    while (end < fast->limit && (*end == 'j' || *end == 'h'))
        end += *end == 'j' ? 5 : 2;
    if (end >= fast->limit || *end != 'e')
        return false;
    size_t length = (size_t)(end - start), count = 0;
    uint64_t hash = fast_hash(start, length);
    struct torch_run *run = &reader->runs[hash % TORCH_RUNS], *neighbour = &reader->runs[hash % TORCH_RUNS ^ 1];
    if (run->hash != hash && neighbour->hash == hash) {
        run = neighbour;
    } else if (run->hash != hash && run->length) {
        *neighbour = *run; /* two places for a hash: the older run gives way */
    }
    if (run->hash != hash || run->length != length || memcmp(reader->run_bytes + run->offset, start, length) != 0) {
        while (fast->at < end)
            if (!fast_frame(fast, &count))
                return false;
        *stack = fast_stack(reader, count);
        if (*stack != NONE32 && length > 0)
            fast_keep_run(reader, run, hash, start, length, *stack);
    } else {
        *stack = run->stack;
    }
    fast->at = end + 1;
    return *stack != NONE32;
}

static bool fast_new_context(struct fast *fast)
{
    struct torch_reader *reader = fast->reader;
    uint32_t number, stack = STACK_EMPTY;
    size_t count = 0;
    fast->at++;
    if (reader->snapshot->context_count > PICKLE_CODE_PAYLOAD ||
        !fast_memoize(fast, pickle_code(PICKLE_CODE_CONTEXT, (uint32_t)reader->snapshot->context_count)))
        return false;
    const unsigned char *before = fast->at;
    if (fast->at[0] == '(') {
        fast->at++;
        if (!fast_run(fast, &stack))
            return false;
    } else if (fast_get(fast, &number) && fast->at[0] == 'a') { /* a lone one */
        fast->at = before;
        if (!fast_frame(fast, &count))
            return false;
        fast->at++;
        stack = fast_stack(reader, count);
    } else {
        fast->at = before; /* an empty list; the next key follows */
    }
    fast->entry.context = stack == NONE32 ? NONE32 : snapshot_add_context(reader->snapshot, stack);
    return fast->entry.context != NONE32;
}

static bool fast_frames(struct fast *fast)
{
    uint32_t number;
    if (fast->at[0] == ']')
        return fast_new_context(fast);
    if (!fast_get(fast, &number))
        return false;
    uint32_t code = fast_code(fast, number);
    fast->entry.context = code & PICKLE_CODE_PAYLOAD;
    return code >> PICKLE_CODE_SHIFT == PICKLE_CODE_CONTEXT;
}

static bool fast_pool(struct fast *fast, uint32_t row)
{
    struct torch_reader *reader = fast->reader;
    int64_t first, second;
    if (!fast_integer(fast, &first) || !fast_integer(fast, &second) || fast->at[0] != 0x86)
        return false;
    fast->at++;
    if (reader->last_pool_index == NONE32 || first != reader->last_pool[0] || second != reader->last_pool[1]) {
        reader->last_pool[0] = first;
        reader->last_pool[1] = second;
        reader->last_pool_index = snapshot_pool(reader->snapshot, first, second);
    }
    fast->entry.pool = reader->last_pool_index;
    return fast->entry.pool != NONE32 && fast_memoize(fast, pickle_code(PICKLE_CODE_ENTRY_POOL, row));
}

/* ---- entries ---- */

/* Which field the key at `at` names. */
static inline bool fast_key(struct fast *fast, unsigned *field)
{
    struct torch_reader *reader = fast->reader;
    uint32_t number;
    if (fast->slots == TORCH_SLOTS || !fast_get(fast, &number))
        return false;
    if (reader->slot_memo[fast->slots] != number || reader->slot_field[fast->slots] == UINT8_MAX) {
        uint32_t code = fast_code(fast, number);
        if (code >> PICKLE_CODE_SHIFT != PICKLE_CODE_STRING)
            return false;
        uint32_t word = reader->snapshot->string_objects[code & PICKLE_CODE_PAYLOAD] - reader->first_word;
        if (word > FIELD_POOL_ID)
            return false;
        reader->slot_memo[fast->slots] = number;
        reader->slot_field[fast->slots] = (uint8_t)word;
    }
    *field = reader->slot_field[fast->slots];
    if (fast->seen >> *field & 1)
        return false;
    fast->seen |= 1u << *field;
    fast->fields = fast->fields << 5 | (*field + 1);
    fast->slots++;
    return true;
}

static inline bool fast_value(struct fast *fast, unsigned field, uint32_t row)
{
    int64_t number;
    switch (field) {
    case FIELD_ACTION:
        return fast_action(fast);
    case FIELD_ADDR:
    case FIELD_DEVICE_FREE:
        if (!fast_integer(fast, &number) || number < 0 ||
            (fast->seen & (1u << FIELD_ADDR | 1u << FIELD_DEVICE_FREE)) == (1u << FIELD_ADDR | 1u << FIELD_DEVICE_FREE))
            return false;
        fast->entry.address = (uint64_t)number;
        return true;
    case FIELD_SIZE:
        if (!fast_integer(fast, &number) || number < 0)
            return false;
        fast->entry.size = (uint64_t)number;
        return true;
    case FIELD_STREAM:
        return fast_stream(fast);
    case FIELD_TIME_US:
        return fast_integer(fast, &fast->entry.time);
    case FIELD_COMPILE_CONTEXT:
        return fast_string(fast, &fast->entry.compile_context);
    case FIELD_USER_METADATA:
        return fast_string(fast, &fast->entry.user_metadata);
    case FIELD_FRAMES:
        return fast_frames(fast);
    default:
        return fast_pool(fast, row);
    }
}

static bool fast_shape(struct fast *fast)
{
    struct torch_reader *reader = fast->reader;
    unsigned place = (unsigned)(hash_mix(fast->fields) % TORCH_SHAPE_CACHE);
    if (reader->shape_fields[place] != fast->fields || !reader->shape_number[place]) {
        uint32_t keys[TORCH_SLOTS];
        for (uint32_t i = 0; i < fast->slots; i++)
            keys[i] = (uint32_t)(fast->fields >> 5 * (fast->slots - 1 - i) & 31) - 1;
        size_t before = reader->snapshot->shape_count;
        uint32_t shape = snapshot_shape(reader->snapshot, ROW_ENTRY, keys, fast->slots);
        if (shape == NONE32 || reader->snapshot->shape_count > before)
            return false; /* a new one: the machine notes its keys */
        reader->shape_fields[place] = fast->fields;
        reader->shape_number[place] = (uint16_t)shape;
    }
    fast->entry.shape = reader->shape_number[place];
    return true;
}

static bool fast_store(struct fast *fast)
{
    struct torch_reader *reader = fast->reader;
    struct entries *entries = &reader->snapshot->entries;
    const struct entry *entry = &fast->entry;
    if (reader->options.skip_traces)
        return true;
    if (torch_entries_room(reader, NULL) ||
        (entry->compile_context != STRING_NONE && !entries->compile_context && entries_need_compile_context(entries)) ||
        (entry->user_metadata != STRING_NONE && !entries->user_metadata && entries_need_user_metadata(entries)) ||
        (entry->pool != NONE32 && !entries->pool && entries_need_pool(entries)))
        return false;
    size_t row = entries->count++;
    entries->action[row] = (uint8_t)entry->action;
    entries->flags[row] = (uint8_t)(fast->seen >> FIELD_TIME_US & 1 ? 0 : ENTRY_NO_TIME);
    entries->device[row] = entry->device;
    entries->stream[row] = fast->stream;
    entries->address[row] = entry->address;
    entries->size[row] = entry->size;
    entries->time[row] = entry->time;
    entries->context[row] = entry->context;
    entries->shape[row] = entry->shape;
    if (entries->compile_context)
        entries->compile_context[row] = entry->compile_context;
    if (entries->user_metadata)
        entries->user_metadata[row] = entry->user_metadata;
    if (entries->pool)
        entries->pool[row] = entry->pool;
    return true;
}

/* One entry at fast->at; on false everything is to be undone. */
static bool fast_entry(struct fast *fast)
{
    struct torch_reader *reader = fast->reader;
    uint64_t row = reader->snapshot->entries.count;
    const uint32_t needed = 1u << FIELD_ACTION | 1u << FIELD_SIZE | 1u << FIELD_STREAM;
    if (row > PICKLE_CODE_PAYLOAD)
        return false;
    fast->at++;
    if (!fast_memoize(fast, pickle_code(PICKLE_CODE_ENTRY, (uint32_t)row)) || *fast->at != '(')
        return false;
    fast->at++;
    while (fast->at < fast->limit && *fast->at != 'u') {
        unsigned field = 0;
        if (!fast_key(fast, &field) || fast->at >= fast->limit || !fast_value(fast, field, (uint32_t)row))
            return false;
    }
    if (fast->at >= fast->limit || (fast->seen & needed) != needed ||
        !(fast->seen & (1u << FIELD_ADDR | 1u << FIELD_DEVICE_FREE)))
        return false;
    fast->at++;
    return fast_shape(fast) && fast_store(fast);
}

/* As many entries as there are; stops where the machine has to go on. */
int torch_fast_entries(struct torch_reader *reader, struct torch_stream *stream, struct error *err)
{
    struct pickle *pickle = reader->pickle;
    struct snapshot *snapshot = reader->snapshot;
    for (;;) {
        if (pickle->end - pickle->at < FAST_WINDOW && !pickle->at_end) {
            int status = pickle_refill(pickle, 64 * 1024, err);
            if (status)
                return status;
        }
        if (pickle->end - pickle->at < 16 * FAST_MARGIN || pickle->memo_replaced ||
            pickle->memo_set != pickle->memo_size)
            return 0;
        if (pickle->at[0] == 0x95 && pickle->at[8] < 0x80) { /* a frame begins */
            pickle->at += 9;
            continue;
        }
        if (pickle->at[0] != '}')
            return 0;
        if (array_reserve(&pickle->memo, &pickle->memo_capacity, pickle->memo_size + FAST_MEMO_ROOM,
                          sizeof(*pickle->memo)))
            return error_no_memory(err);
        struct fast fast = {.reader = reader, .pickle = pickle, .at = pickle->at, .limit = pickle->end - FAST_MARGIN};
        entry_init(&fast.entry);
        fast.entry.device = stream->device;
        size_t memo = pickle->memo_size, objects = snapshot->string_object_count, contexts = snapshot->context_count;
        if (!fast_entry(&fast)) {
            pickle->memo_set -= pickle->memo_size - memo;
            pickle->memo_size = memo;
            snapshot->string_object_count = objects;
            snapshot->context_count = contexts;
            return 0;
        }
        stream->count++;
        pickle->at = fast.at;
    }
}
