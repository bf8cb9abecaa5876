/*
 * The rows: entries, segments with their blocks, annotations.  Uses base and snapshot.
 */
#include "format/torch_pack.h"

#include <string.h>

static value word_at(const struct torch_dict *dict, uint32_t slot)
{
    return dict->items[2 * slot + 1];
}

/* ---- trace entries ---- */

int torch_entries_room(struct torch_reader *reader, struct error *err)
{
    struct entries *entries = &reader->snapshot->entries;
    if (entries->count < entries->capacity)
        return 0;
    return entries_reserve(entries, entries->capacity + entries->capacity / 2 + 1024) ? error_no_memory(err) : 0;
}

static int torch_action(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, struct entry *entry,
                        struct error *err)
{
    value word = word_at(dict, slot);
    int number = torch_word_of(reader, word);
    if (number >= TORCH_WORD_ACTIONS && number < TORCH_WORD_STATES) {
        entry->action = (enum action)(number - TORCH_WORD_ACTIONS);
        torch_share_string(reader, word);
        return 0;
    }
    if (value_kind(word) != VALUE_STRING)
        entry->flags |= ENTRY_BAD;
    return torch_odd(reader, dict, slot, err);
}

/* What has its place in the columns; *handled false: an odd value. */
static int torch_entry_field(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot,
                             struct entry *entry, bool *has_address, struct error *err)
{
    bool bad = false;
    int status;
    switch (dict->keys[slot]) {
    case FIELD_ACTION:
        return torch_action(reader, dict, slot, entry, err);
    case FIELD_ADDR:
    case FIELD_DEVICE_FREE:
        if (*has_address) /* both: the column is taken */
            return torch_odd(reader, dict, slot, err);
        *has_address = true;
        status = torch_unsigned(reader, dict, slot, &entry->address, &bad, err);
        break;
    case FIELD_SIZE:
        status = torch_unsigned(reader, dict, slot, &entry->size, &bad, err);
        break;
    case FIELD_STREAM:
        status = torch_signed(reader, dict, slot, &entry->stream, &bad, err);
        entry->flags |= bad ? ENTRY_STREAM_UNKNOWN : 0;
        return status;
    case FIELD_TIME_US:
        status = torch_signed(reader, dict, slot, &entry->time, &bad, err);
        entry->flags &= (uint8_t)~(bad ? 0 : ENTRY_NO_TIME);
        return status;
    case FIELD_COMPILE_CONTEXT:
        return torch_string(reader, dict, slot, &entry->compile_context, err);
    case FIELD_USER_METADATA:
        return torch_string(reader, dict, slot, &entry->user_metadata, err);
    case FIELD_FRAMES:
        return torch_context_of(reader, dict, slot, &entry->context, err);
    case FIELD_POOL_ID:
        return torch_pool_of(reader, dict, slot, &entry->pool, err);
    default:
        return torch_odd(reader, dict, slot, err);
    }
    entry->flags |= bad ? ENTRY_BAD : 0;
    return status;
}

static bool torch_shape_has(const struct torch_dict *dict, enum field field)
{
    for (uint32_t i = 0; i < dict->count; i++)
        if (dict->keys[i] == (uint32_t)field)
            return true;
    return false;
}

static int torch_pack_entry(struct torch_reader *reader, const struct torch_dict *dict, uint16_t device,
                            struct error *err)
{
    struct entry entry;
    bool has_address = false;
    entry_init(&entry);
    entry.action = ACTION_OTHER;
    entry.flags = ENTRY_NO_TIME;
    entry.device = device;
    entry.shape = dict->shape;
    for (uint32_t i = 0; i < dict->count; i++) {
        int status = torch_entry_field(reader, dict, i, &entry, &has_address, err);
        if (status)
            return status;
    }
    if (!torch_shape_has(dict, FIELD_ACTION) || !torch_shape_has(dict, FIELD_SIZE) || !has_address)
        entry.flags |= ENTRY_BAD;
    if (!torch_shape_has(dict, FIELD_STREAM))
        entry.flags |= ENTRY_STREAM_UNKNOWN;
    if (reader->options.skip_traces)
        return 0;
    if (torch_entries_room(reader, err) || snapshot_add_entry(reader->snapshot, &entry))
        return error_no_memory(err);
    return 0;
}

/* ---- blocks ---- */

static value torch_get(const struct torch_reader *reader, value dict, enum torch_word word)
{
    const value *items = values_items(reader->values, dict);
    value found = value_make(VALUE_MARK, 0);
    if (value_kind(dict) != VALUE_DICT)
        return found;
    for (size_t i = 0; i + 1 < values_count(reader->values, dict); i += 2)
        if (torch_word_of(reader, items[i]) == (int)word)
            found = items[i + 1];
    return found;
}

/* Before 2.0: the newest of a block's history says what it is now.  0, or -1 if it says nothing. */
static int torch_pack_history(struct torch_reader *reader, value history, struct block *block)
{
    if (value_kind(history) != VALUE_LIST || !values_count(reader->values, history))
        return -1;
    value newest = values_items(reader->values, history)[0];
    value frames = torch_get(reader, newest, (enum torch_word)(TORCH_WORD_FIELDS + FIELD_FRAMES));
    value size = torch_get(reader, newest, TORCH_WORD_REAL_SIZE);
    if (value_kind(frames) == VALUE_ROW && value_row_kind(frames) == ROW_CONTEXT)
        block->context = (uint32_t)value_row_number(frames);
    return values_get_unsigned(reader->values, size, &block->requested) ? 0 : -1;
}

static int torch_block_state(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot,
                             struct block *block, struct error *err)
{
    value word = word_at(dict, slot);
    int number = torch_word_of(reader, word);
    if (number >= TORCH_WORD_STATES && number < TORCH_WORD_AWAITING) {
        block->state = (uint8_t)(number - TORCH_WORD_STATES);
        torch_share_string(reader, word);
        return 0;
    }
    block->state = number == TORCH_WORD_AWAITING ? BLOCK_ACTIVE_PENDING_FREE : BLOCK_STATE_OTHER;
    return torch_odd(reader, dict, slot, err);
}

struct torch_block_slots {
    int address, size;
    bool has_requested;
};

static int torch_block_field(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot,
                             struct block *block, struct torch_block_slots *slots, struct error *err)
{
    bool bad = false;
    switch (dict->keys[slot]) {
    case FIELD_ADDRESS:
        slots->address = (int)slot;
        return torch_unsigned(reader, dict, slot, &block->address, &bad, err);
    case FIELD_SIZE:
        slots->size = (int)slot;
        return torch_unsigned(reader, dict, slot, &block->size, &bad, err);
    case FIELD_REQUESTED_SIZE:
        slots->has_requested = true;
        return torch_unsigned(reader, dict, slot, &block->requested, &bad, err);
    case FIELD_STATE:
        return torch_block_state(reader, dict, slot, block, err);
    case FIELD_FRAMES:
        return torch_context_of(reader, dict, slot, &block->context, err);
    case FIELD_HISTORY:
        slots->has_requested |= torch_pack_history(reader, word_at(dict, slot), block) == 0;
        return torch_odd(reader, dict, slot, err);
    default:
        return torch_odd(reader, dict, slot, err);
    }
}

/* Blocks that overlap or leave their segment are cut to what fits; what the file said is kept as odd values. */
static int torch_fit_block(struct torch_reader *reader, const struct torch_dict *dict, struct block *block,
                           const struct torch_block_slots *slots, uint64_t at, uint64_t end, struct error *err)
{
    int status = 0;
    if (slots->address < 0)
        block->address = at;
    if (block->address < at || block->address > end) {
        block->address = at;
        if (slots->address >= 0)
            status = torch_odd(reader, dict, (uint32_t)slots->address, err);
    }
    if (!status && block->size > end - block->address) {
        block->size = end - block->address;
        if (slots->size >= 0)
            status = torch_odd(reader, dict, (uint32_t)slots->size, err);
    }
    return status;
}

static int torch_pack_block(struct torch_reader *reader, value word, bool keep, uint64_t *at, uint64_t end,
                            struct error *err)
{
    struct state *state = &reader->snapshot->end;
    struct torch_dict dict;
    struct block block = {.context = CONTEXT_NONE, .state = BLOCK_STATE_OTHER};
    struct torch_block_slots slots = {.address = -1, .size = -1};
    int status = torch_open_dict(reader, word, ROW_BLOCK, &dict, err);
    if (status < 0)
        return status;
    status = 0;
    dict.row = state->block_count;
    dict.keep = keep;
    for (uint32_t i = 0; i < dict.count && !status; i++)
        status = torch_block_field(reader, &dict, i, &block, &slots, err);
    if (!status)
        status = torch_fit_block(reader, &dict, &block, &slots, *at, end, err);
    if (status)
        return status;
    if (!slots.has_requested) {
        block.flags |= BLOCK_REQUESTED_UNKNOWN;
        block.requested = block.state == BLOCK_INACTIVE ? 0 : block.size;
    }
    block.shape = dict.shape;
    *at = block.address + block.size;
    if (state_add_block(state, &block))
        return error_no_memory(err);
    return torch_close_dict(reader, &dict, err);
}

/* ---- segments ---- */

/* Can the list of blocks be taken apart: is nothing else pointing into it? */
static int torch_blocks_are_exact(struct torch_reader *reader, value list, bool *exact, struct error *err)
{
    const value *items = values_items(reader->values, list);
    *exact = torch_is_exact(reader, list);
    for (size_t i = 0; i < values_count(reader->values, list) && *exact; i++) {
        struct torch_dict dict;
        *exact = value_kind(items[i]) == VALUE_DICT && torch_is_exact(reader, items[i]);
        int status = *exact ? torch_open_dict(reader, items[i], ROW_BLOCK, &dict, err) : 0;
        if (status < 0)
            return status;
        *exact = *exact && status == 0;
    }
    return 0;
}

static int torch_pack_blocks(struct torch_reader *reader, value list, bool keep, struct segment *segment,
                             struct error *err)
{
    uint64_t at = segment->address, end = segment->address + segment->total_size;
    int status = keep ? torch_count_words(reader, values_count(reader->values, list), err) : 0;
    for (size_t i = 0; i < values_count(reader->values, list) && !status; i++) {
        value word = values_items(reader->values, list)[i], opened = word;
        if (!pickle_is_dict(word))
            continue;
        status = torch_unpack(reader, &opened, err);
        if (!status)
            status = torch_pack_block(reader, opened, keep, &at, end, err);
        if (opened != word)
            values_release(reader->values, opened);
    }
    if (!keep && !status)
        return pickle_packed(reader->pickle, list, value_row(PICKLE_ROW_SEGMENT_BLOCKS, reader->snapshot->end.segment_count - 1),
                             err);
    return status;
}

static int torch_segment_type(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot,
                              struct segment *segment, struct error *err)
{
    value word = word_at(dict, slot);
    int number = torch_word_of(reader, word);
    if (number != TORCH_WORD_SMALL && number != TORCH_WORD_LARGE)
        return torch_odd(reader, dict, slot, err);
    segment->is_large = number == TORCH_WORD_LARGE;
    torch_share_string(reader, word);
    return 0;
}

static int torch_device(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot, uint16_t *device,
                        struct error *err)
{
    uint64_t number;
    if (!values_get_unsigned(reader->values, word_at(dict, slot), &number) || number >= TORCH_DEVICES)
        return torch_odd(reader, dict, slot, err);
    *device = (uint16_t)number;
    return 0;
}

static int torch_segment_field(struct torch_reader *reader, const struct torch_dict *dict, uint32_t slot,
                               struct segment *segment, struct error *err)
{
    bool bad = false;
    value word = word_at(dict, slot);
    switch (dict->keys[slot]) {
    case FIELD_DEVICE:
        return torch_device(reader, dict, slot, &segment->device, err);
    case FIELD_ADDRESS:
        return torch_unsigned(reader, dict, slot, &segment->address, &bad, err);
    case FIELD_TOTAL_SIZE:
        return torch_unsigned(reader, dict, slot, &segment->total_size, &bad, err);
    case FIELD_ALLOCATED_SIZE:
        return torch_unsigned(reader, dict, slot, &segment->allocated_size, &bad, err);
    case FIELD_ACTIVE_SIZE:
        return torch_unsigned(reader, dict, slot, &segment->active_size, &bad, err);
    case FIELD_REQUESTED_SIZE:
        return torch_unsigned(reader, dict, slot, &segment->requested_size, &bad, err);
    case FIELD_STREAM:
        return torch_signed(reader, dict, slot, &segment->stream, &bad, err);
    case FIELD_SEGMENT_TYPE:
        return torch_segment_type(reader, dict, slot, segment, err);
    case FIELD_SEGMENT_POOL_ID:
        return torch_pool_of(reader, dict, slot, &segment->pool, err);
    case FIELD_IS_EXPANDABLE:
        segment->is_expandable = value_kind(word) == VALUE_TRUE;
        return value_kind(word) == VALUE_TRUE || value_kind(word) == VALUE_FALSE ? 0
                                                                                : torch_odd(reader, dict, slot, err);
    case FIELD_FRAMES:
        return torch_context_of(reader, dict, slot, &segment->context, err);
    case FIELD_BLOCKS:
        return value_kind(word) == VALUE_LIST ? 0 : torch_odd(reader, dict, slot, err);
    default:
        return torch_odd(reader, dict, slot, err);
    }
}

/* Sums that an old file does not have. */
static void torch_sum_segment(struct state *state, const struct torch_dict *dict)
{
    struct segment *segment = &state->segments[state->segment_count - 1];
    uint64_t allocated = 0, active = 0, requested = 0;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const struct block *block = &state->blocks[segment->first_block + i];
        bool is_active = block->state == BLOCK_ACTIVE_ALLOCATED || block->state == BLOCK_ACTIVE_PENDING_FREE;
        allocated += block->state == BLOCK_ACTIVE_ALLOCATED ? block->size : 0;
        active += is_active ? block->size : 0;
        requested += is_active ? block->requested : 0;
    }
    if (!torch_shape_has(dict, FIELD_ALLOCATED_SIZE))
        segment->allocated_size = allocated;
    if (!torch_shape_has(dict, FIELD_ACTIVE_SIZE))
        segment->active_size = active;
    if (!torch_shape_has(dict, FIELD_REQUESTED_SIZE))
        segment->requested_size = requested;
}

static uint32_t torch_slot(const struct torch_dict *dict, enum field field)
{
    uint32_t slot = 0;
    while (slot < dict->count && dict->keys[slot] != (uint32_t)field)
        slot++;
    return slot;
}

static int torch_pack_segment(struct torch_reader *reader, struct torch_dict *dict, struct error *err)
{
    struct segment segment = {.context = CONTEXT_NONE, .pool = NONE32, .shape = dict->shape};
    uint32_t blocks = torch_slot(dict, FIELD_BLOCKS);
    value list = blocks < dict->count ? word_at(dict, blocks) : value_make(VALUE_NONE, 0), opened = list;
    bool blocks_exact = true;
    int status = value_kind(list) == VALUE_LIST ? torch_blocks_are_exact(reader, list, &blocks_exact, err) : 0;
    dict->keep = dict->keep || !blocks_exact;
    for (uint32_t i = 0; i < dict->count && !status; i++)
        status = torch_segment_field(reader, dict, i, &segment, err);
    if (!status && segment.total_size > UINT64_MAX - segment.address) {
        uint32_t slot = torch_slot(dict, FIELD_TOTAL_SIZE);
        segment.total_size = UINT64_MAX - segment.address;
        status = slot < dict->count ? torch_odd(reader, dict, slot, err) : 0;
    }
    if (status)
        return status;
    if (state_add_segment(&reader->snapshot->end, &segment) ||
        snapshot_device(reader->snapshot, 0, segment.device) == NONE32)
        return error_no_memory(err);
    if (torch_is_list(list))
        status = torch_unpack(reader, &opened, err);
    if (!status && value_kind(opened) == VALUE_LIST)
        status = torch_pack_blocks(reader, opened, dict->keep || opened != list, &segment, err);
    if (opened != list)
        values_release(reader->values, opened);
    if (!status)
        torch_sum_segment(&reader->snapshot->end, dict);
    return status;
}

/* ---- annotations ---- */

/* PyTorch makes the strings of annotations anew each time, keys included. */
static bool torch_is_own_object(const struct torch_reader *reader, value string)
{
    uint32_t object = (uint32_t)value_payload(string);
    return table_get(&reader->snapshot->shared_strings, reader->snapshot->string_objects[object], NONE32) != object;
}

static int torch_note_keys(struct torch_reader *reader, const struct torch_dict *dict, struct error *err)
{
    for (uint32_t i = 0; i < dict->count && i < ODD_KEY && !dict->keep; i++)
        if (torch_is_own_object(reader, dict->items[2 * i]) &&
            snapshot_set_odd(reader->snapshot, ROW_ANNOTATION, dict->row, (uint16_t)(i | ODD_KEY), dict->items[2 * i]))
            return error_no_memory(err);
    return 0;
}

static int torch_pack_annotation(struct torch_reader *reader, const struct torch_dict *dict, struct error *err)
{
    struct annotation annotation = {.name = STRING_NONE, .shape = dict->shape, .stage = 3};
    int status = torch_note_keys(reader, dict, err);
    for (uint32_t i = 0; i < dict->count && !status; i++) {
        bool bad = false;
        int word = torch_word_of(reader, word_at(dict, i));
        if (dict->keys[i] == FIELD_STAGE && (word == TORCH_WORD_START || word == TORCH_WORD_END)) {
            annotation.stage = word == TORCH_WORD_END;
            torch_share_string(reader, word_at(dict, i));
            if (torch_is_own_object(reader, word_at(dict, i)))
                status = torch_odd(reader, dict, i, err);
        } else if (dict->keys[i] == FIELD_NAME) {
            status = torch_string(reader, dict, i, &annotation.name, err);
        } else if (dict->keys[i] == FIELD_DEVICE) {
            status = torch_device(reader, dict, i, &annotation.device, err);
        } else if (dict->keys[i] == FIELD_TIME_US) {
            status = torch_signed(reader, dict, i, &annotation.time, &bad, err);
        } else {
            status = torch_odd(reader, dict, i, err);
        }
    }
    if (!status && snapshot_add_annotation(reader->snapshot, &annotation) == NONE32)
        status = error_no_memory(err);
    return status;
}

static int torch_pack_dict(struct torch_reader *reader, enum row_kind kind, value word, uint16_t device, uint64_t row,
                           struct error *err)
{
    struct torch_dict dict;
    int status = torch_open_dict(reader, word, kind, &dict, err);
    if (status < 0)
        return status;
    dict.keep = status != 0 || !torch_is_exact(reader, word);
    dict.row = row;
    if (kind == ROW_ENTRY)
        status = torch_pack_entry(reader, &dict, device, err);
    else if (kind == ROW_SEGMENT)
        status = torch_pack_segment(reader, &dict, err);
    else
        status = torch_pack_annotation(reader, &dict, err);
    if (!status)
        status = torch_close_dict(reader, &dict, err);
    return status ? status : dict.keep ? TORCH_INEXACT : 0;
}

int torch_pack_row(struct torch_reader *reader, enum row_kind kind, value word, uint16_t device, uint64_t *row,
                   struct error *err)
{
    struct snapshot *snapshot = reader->snapshot;
    value opened = word;
    *row = kind == ROW_ENTRY ? snapshot->entries.count
           : kind == ROW_SEGMENT ? snapshot->end.segment_count : snapshot->annotation_count;
    if (kind == ROW_ENTRY && value_kind(word) == VALUE_ROW && value_row_kind(word) == ROW_ENTRY)
        return torch_copy_entry(reader, value_row_number(word), device, err);
    int status = torch_unpack(reader, &opened, err);
    if (!status)
        status = torch_pack_dict(reader, kind, opened, device, *row, err);
    if (opened != word)
        values_release(reader->values, opened);
    return status;
}
