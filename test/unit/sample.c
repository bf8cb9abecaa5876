/* Snapshots for tests.  Aborts when memory runs out. */
#include "sample.h"

#include "format/bin_write.h"

#include <stdlib.h>
#include <string.h>

static void must(bool condition)
{
    if (!condition)
        abort();
}

static uint32_t sample_object(struct snapshot *s, const char *text)
{
    return snapshot_string_object(s, snapshot_string(s, text, strlen(text)));
}

static uint32_t sample_content(struct snapshot *s, const char *text)
{
    return snapshot_string(s, text, strlen(text));
}

static void sample_stacks(struct snapshot *s)
{
    uint8_t build_id[32] = {1, 2, 3, 254, 255};
    struct module module = {.path = sample_content(s, "/usr/lib/libdemo.so"), .build_id_length = 20,
                            .load_address = UINT64_C(0x7f0000000000), .size = 4096};
    memcpy(module.build_id, build_id, sizeof(build_id));
    must(snapshot_add_module(s, &module) == 0);
    struct frame frames[] = {
        {.name = sample_object(s, "main"), .filename = sample_object(s, "train.py"), .line = 12, .module = NONE32},
        {.name = sample_object(s, "f<lambda>&\"'"), .filename = sample_object(s, "??"), .line = -3, .module = NONE32,
         .flags = FRAME_PYTHON},
        {.name = STRING_NONE, .filename = STRING_NONE, .module = 0, .flags = FRAME_NATIVE | FRAME_TRUNCATED,
         .offset = 0x1234},
    };
    uint32_t stack = STACK_EMPTY;
    for (uint32_t i = 0; i < 3; i++) {
        must(snapshot_add_frame(s, &frames[i]) == i);
        stack = snapshot_push_frame(s, stack, i);
    }
    must(stack == 3 && snapshot_push_frame(s, 1, 2) == 4);
    snapshot_add_context(s, 3);
    snapshot_add_context(s, 3);
    snapshot_add_context(s, STACK_EMPTY);
    snapshot_add_context(s, 4);
}

static void sample_entries(struct snapshot *s)
{
    static const struct entry list[] = {
        {.action = ACTION_SEGMENT_ALLOC, .address = UINT64_C(0x7f1200000000), .size = 2097152, .time = 1700000000000000,
         .context = 0, .compile_context = 4, .user_metadata = STRING_NONE, .pool = 0, .thread = 77, .call = 1},
        {.action = ACTION_ALLOC, .address = UINT64_C(0x7f1200000000), .size = 1000, .time = 1700000000000003,
         .context = 0, .compile_context = 5, .user_metadata = 6, .pool = 0, .thread = 77, .stream = -2},
        {.action = ACTION_ALLOC, .address = UINT64_C(0xffffffffffffe000), .size = 12, .time = 1700000000000001,
         .context = CONTEXT_NONE, .compile_context = STRING_NONE, .user_metadata = STRING_NONE, .pool = NONE32,
         .process = 1, .device = 3, .flags = ENTRY_NO_TIME, .kind = MEMORY_ASYNC},
        {.action = ACTION_FREE_REQUESTED, .address = UINT64_C(0x7f1200000000), .size = 1000, .time = 1700000000000009,
         .context = 1, .compile_context = 7, .user_metadata = STRING_NONE, .pool = 0, .thread = 78, .stream = -2},
        {.action = ACTION_FREE_COMPLETED, .address = UINT64_C(0x7f1200000000), .size = 1024, .time = 1700000000000009,
         .context = 1, .compile_context = 8, .user_metadata = STRING_NONE, .pool = 0, .thread = 78, .stream = -2},
        {.action = ACTION_OOM, .address = 4096, .size = UINT64_MAX, .time = -5, .context = 2,
         .compile_context = STRING_NONE, .user_metadata = STRING_NONE, .pool = NONE32, .flags = ENTRY_BAD},
        {.action = ACTION_FREE_REQUESTED, .address = 0x5000, .size = 1, .time = INT64_MAX, .context = 3,
         .compile_context = STRING_NONE, .user_metadata = STRING_NONE, .pool = NONE32},
        {.action = ACTION_OTHER, .address = 0, .size = 0, .time = INT64_MIN, .context = 2,
         .compile_context = STRING_NONE, .user_metadata = STRING_NONE, .pool = 1},
        {.action = ACTION_SEGMENT_FREE, .address = UINT64_C(0x7f1200000000), .size = 2097152, .time = 0, .context = 0,
         .compile_context = STRING_NONE, .user_metadata = STRING_NONE, .pool = 0},
    };
    uint32_t keys[] = {FIELD_ACTION, FIELD_ADDR, FIELD_COUNT + sample_content(s, "mystery"), FIELD_FRAMES};
    must(snapshot_shape(s, ROW_ENTRY, keys, 4) == 1);
    must(snapshot_pool(s, 0, 0) == 0 && snapshot_pool(s, -1, INT64_MAX) == 1 && snapshot_call(s, "cuMemAlloc_v2") == 1);
    for (int i = 0; i < 5; i++)
        sample_object(s, "N/A");
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        must(snapshot_add_entry(s, &list[i]) == 0);
    s->entries.shape[7] = 1;
    snapshot_set_odd(s, ROW_ENTRY, 7, 0, value_make(VALUE_STRING, sample_object(s, "defrag")));
    snapshot_set_odd(s, ROW_ENTRY, 7, 2, value_row(ROW_CONTEXT, 1));
}

static void sample_state(struct snapshot *s)
{
    struct segment segments[2] = {
        {.address = UINT64_C(0x7f1300000000), .total_size = 20971520, .allocated_size = 512, .active_size = 1024,
         .requested_size = 500, .stream = -2, .context = 2, .pool = 1, .is_large = true},
        {.address = UINT64_C(0xfffffffffff00000), .total_size = 8192, .context = CONTEXT_NONE, .pool = NONE32,
         .device = 3, .process = 1, .is_expandable = true, .kind = MEMORY_VIRTUAL},
    };
    struct block blocks[3] = {
        {.address = UINT64_C(0x7f1300000000), .size = 512, .requested = 500, .context = 1,
         .state = BLOCK_ACTIVE_ALLOCATED, .flags = BLOCK_BEFORE_RECORDING},
        {.address = UINT64_C(0x7f1300000200), .size = 512, .requested = 2, .context = 3,
         .state = BLOCK_ACTIVE_PENDING_FREE},
        {.address = UINT64_C(0x7f1300000400), .size = 20970496, .requested = 77, .context = CONTEXT_NONE,
         .state = BLOCK_INACTIVE, .flags = BLOCK_REQUESTED_UNKNOWN},
    };
    must(state_add_segment(&s->end, &segments[0]) == 0);
    for (int i = 0; i < 3; i++)
        must(state_add_block(&s->end, &blocks[i]) == 0);
    must(state_add_segment(&s->end, &segments[1]) == 0);
    s->end.moment = s->entries.count;
    s->end.exact = false;
}

static void sample_facts(struct snapshot *s)
{
    s->processes[0] = (struct process){.pid = 4711, .parent = -1, .program = sample_content(s, "python3"),
        .host = sample_content(s, "node7"), .arguments = STRING_NONE, .boot_id = sample_content(s, "b-o-o-t"),
        .driver = sample_content(s, "580.1"), .rank = 3, .start_time = 1, .end_time = 1700000000000000,
        .exit_status = -1, .implied_blocks = true, .lost_stacks = 9, .lost_state = UINT64_MAX,
        .unrecorded = UINT64_MAX - 1, .clock_realtime = 1700000000000000, .clock_monotonic = 123456};
    struct process second = {.pid = 1, .program = STRING_NONE, .host = STRING_NONE, .boot_id = STRING_NONE,
                             .driver = STRING_NONE, .arguments = sample_content(s, "\xff\xfe"), .rank = -1,
                             .incomplete = true};
    must(snapshot_add_process(s, &second) == 1);
    must(snapshot_device(s, 0, 0) == 0 && snapshot_device(s, 1, 3) == 1);
    struct device *device = &s->devices[1];
    device->name = sample_content(s, "NVIDIA H200");
    device->has_uuid = device->has_stats = device->stats_exact = true;
    memcpy(device->uuid, "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\376\377", 16);
    device->total = UINT64_C(150109880320);
    device->max_entries = 1000;
    device->lost_entries = 500;
    device->stats.num_ooms = 1;
    device->stats.max_split_size = -1;
    memory_stats_increase(&device->stats, MEMORY_STAT_ALLOCATED_BYTES, MEMORY_POOL_LARGE, INT64_C(1) << 40);
    s->trace_count = 4;
    struct annotation annotation = {.name = sample_object(s, "step"), .time = 99, .device = 1, .stage = 1};
    must(snapshot_add_annotation(s, &annotation) == 0);
}

/* A dict that contains itself, numbers of every size, bytes, a tuple shared twice. */
static void sample_values(struct snapshot *s)
{
    struct values *v = s->values;
    unsigned char big[9] = {1, 2, 3, 4, 5, 6, 7, 8, 0x3f};
    value dict = values_container(v, VALUE_DICT), tuple = values_container(v, VALUE_TUPLE);
    value numbers[] = {values_int(v, -1), values_int(v, (INT64_C(1) << 59) - 1), values_int(v, -(INT64_C(1) << 59)),
                       values_unsigned(v, UINT64_MAX), values_long(v, big, sizeof(big)), values_float(v, -0.5),
                       values_bytes(v, VALUE_BYTES, "\0\xff", 2), values_bytes(v, VALUE_BYTEARRAY, "", 0),
                       value_make(VALUE_NONE, 0), value_make(VALUE_TRUE, 0), value_make(VALUE_FALSE, 0),
                       value_make(VALUE_STRING, 0), value_row(ROW_CONTEXT, 2), value_row(ROW_FRAME, 1),
                       value_row(ROW_ENTRY, 8)};
    must(values_append(v, tuple, numbers, sizeof(numbers) / sizeof(numbers[0])) == 0);
    value items[] = {value_make(VALUE_STRING, 1), tuple, value_make(VALUE_STRING, 2), dict, values_int(v, 7), tuple,
                     value_make(VALUE_STRING, 3), values_container(v, VALUE_FROZENSET)};
    must(values_append(v, dict, items, sizeof(items) / sizeof(items[0])) == 0);
    must(snapshot_add_setting(s, sample_content(s, "max_split_size"), values_int(v, -1)) == 0);
    must(snapshot_add_setting(s, sample_content(s, "extra"), dict) == 1);
    uint32_t top[] = {FIELD_SEGMENTS, FIELD_DEVICE_TRACES, FIELD_COUNT + sample_content(s, "more")};
    s->top_shape = (uint16_t)snapshot_shape(s, ROW_TOP, top, 3);
    snapshot_set_odd(s, ROW_TOP, 0, 2, tuple);
    snapshot_set_odd(s, ROW_SEGMENT, 1, 0, value_row(ROW_BLOCK, 2));
    s->has_raw = true;
    s->raw = dict;
}

struct snapshot *sample_full(void)
{
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    must(s != NULL);
    sample_stacks(s);
    sample_facts(s);
    sample_entries(s);
    sample_state(s);
    sample_values(s);
    struct error err = {0};
    must(snapshot_is_valid(s, &err));
    return s;
}

static uint64_t sample_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return hash_mix(*seed);
}

/* Slots of 1 MiB in one segment: slot i is used by at most one allocation at a time. */
enum { SAMPLE_SLOTS = 300 };
#define SAMPLE_BASE UINT64_C(0x7f0000000000)
#define SAMPLE_SLOT UINT64_C(0x100000)

static void sample_blocks(struct snapshot *s, const struct block *slots)
{
    struct segment segment = {.address = SAMPLE_BASE, .total_size = SAMPLE_SLOTS * SAMPLE_SLOT, .context = 0,
                              .pool = NONE32, .is_large = true};
    must(state_add_segment(&s->end, &segment) == 0);
    for (uint64_t i = 0; i < SAMPLE_SLOTS; i++) {
        struct block rest = {.address = SAMPLE_BASE + i * SAMPLE_SLOT, .size = SAMPLE_SLOT, .context = CONTEXT_NONE};
        if (slots[i].size) {
            must(state_add_block(&s->end, &slots[i]) == 0);
            s->end.segments[0].allocated_size += slots[i].size;
            s->end.segments[0].active_size += slots[i].size;
            s->end.segments[0].requested_size += slots[i].requested;
            rest.address += slots[i].size;
            rest.size -= slots[i].size;
        }
        if (rest.size)
            must(state_add_block(&s->end, &rest) == 0);
    }
    s->end.moment = s->entries.count;
}

struct snapshot *sample_trace(size_t entries, uint64_t seed)
{
    struct snapshot *s = snapshot_new(SOURCE_TORCH);
    must(s != NULL);
    struct frame frame = {.name = sample_object(s, "f"), .filename = sample_object(s, "x.py"), .module = NONE32};
    struct block slots[SAMPLE_SLOTS] = {0};
    struct entry entry;
    uint32_t stacks[2] = {STACK_EMPTY, snapshot_push_frame(s, STACK_EMPTY, snapshot_add_frame(s, &frame))};
    entry_init(&entry);
    entry.time = 1700000000000000;
    entry.action = ACTION_SEGMENT_ALLOC;
    entry.address = SAMPLE_BASE;
    entry.size = SAMPLE_SLOTS * SAMPLE_SLOT;
    entry.context = snapshot_add_context(s, stacks[1]);
    must(snapshot_add_entry(s, &entry) == 0);
    for (size_t i = 1; i < entries; i++) {
        uint64_t random = sample_random(&seed);
        struct block *slot = &slots[random % SAMPLE_SLOTS];
        entry.time += (int64_t)(random >> 32 & 15);
        entry.address = SAMPLE_BASE + random % SAMPLE_SLOTS * SAMPLE_SLOT;
        if (slot->size && i + 1 == entries)
            entry.address = SAMPLE_BASE, entry.action = ACTION_SNAPSHOT, entry.size = 0;
        else if (slot->size) {
            entry.action = ACTION_FREE_REQUESTED;
            entry.size = slot->requested;
            entry.context = snapshot_add_context(s, stacks[1]);
            must(snapshot_add_entry(s, &entry) == 0);
            entry.action = ACTION_FREE_COMPLETED;
            i++;
            slot->size = 0;
        } else {
            entry.action = ACTION_ALLOC;
            entry.size = 1 + (random >> 40) % 900000;
            entry.context = snapshot_add_context(s, stacks[random >> 20 & 1]);
            *slot = (struct block){.address = entry.address, .size = (entry.size + 511) / 512 * 512,
                                   .requested = entry.size, .context = entry.context, .state = BLOCK_ACTIVE_ALLOCATED};
        }
        must(snapshot_add_entry(s, &entry) == 0);
    }
    snapshot_device(s, 0, 0);
    s->trace_count = 1;
    sample_blocks(s, slots);
    struct error err = {0};
    must(snapshot_is_valid(s, &err) && s->entries.count == entries);
    return s;
}

unsigned char *sample_bin(const struct snapshot *snapshot, size_t *length)
{
    unsigned char *bytes = NULL;
    struct output *output;
    must(output_to_memory(&bytes, length, &output, NULL) == 0 && bin_write(snapshot, output, NULL) == 0);
    must(output_commit(output, NULL) == 0);
    return bytes;
}
