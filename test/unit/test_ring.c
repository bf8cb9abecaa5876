/* The ring file from both sides: what the recorder writes, the reader finds. */
#include "ring_support.h"

#include <sys/mman.h>
#include <time.h>

static void numbers_of_actions_and_kinds_agree_with_the_snapshot(void **state)
{
    (void)state;
    assert_int_equal(RECORD_ALLOC, ACTION_ALLOC);
    assert_int_equal(RECORD_FREE_REQUESTED, ACTION_FREE_REQUESTED);
    assert_int_equal(RECORD_FREE_COMPLETED, ACTION_FREE_COMPLETED);
    assert_int_equal(RECORD_SEGMENT_ALLOC, ACTION_SEGMENT_ALLOC);
    assert_int_equal(RECORD_SEGMENT_FREE, ACTION_SEGMENT_FREE);
    assert_int_equal(RECORD_SEGMENT_MAP, ACTION_SEGMENT_MAP);
    assert_int_equal(RECORD_SEGMENT_UNMAP, ACTION_SEGMENT_UNMAP);
    assert_int_equal(RECORD_SNAPSHOT, ACTION_SNAPSHOT);
    assert_int_equal(RECORD_OOM, ACTION_OOM);
    assert_int_equal(RECORD_PLAIN, MEMORY_PLAIN);
    assert_int_equal(RECORD_PITCHED, MEMORY_PITCHED);
    assert_int_equal(RECORD_ARRAY, MEMORY_ARRAY);
    assert_int_equal(RECORD_MIPMAPPED, MEMORY_MIPMAPPED);
    assert_int_equal(RECORD_MANAGED, MEMORY_MANAGED);
    assert_int_equal(RECORD_HOST, MEMORY_HOST);
    assert_int_equal(RECORD_ASYNC, MEMORY_ASYNC);
    assert_int_equal(RECORD_POOL, MEMORY_POOL);
    assert_int_equal(RECORD_VIRTUAL, MEMORY_VIRTUAL);
    assert_int_equal(RECORD_IMPORTED, MEMORY_IMPORTED);
    assert_int_equal(RECORD_GRAPH, MEMORY_GRAPH);
    assert_int_equal(RECORD_CONTEXT, MEMORY_CONTEXT);
    assert_int_equal(RECORD_MODULE, MEMORY_MODULE);
    assert_int_equal(RING_ALL, MEMORY_POOL_ALL);
    assert_int_equal(RING_SMALL, MEMORY_POOL_SMALL);
    assert_int_equal(RING_LARGE, MEMORY_POOL_LARGE);
}

static void layout_keeps_its_sizes(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct ring_slot), 64);
    assert_int_equal(sizeof(struct ring_extension), 32);
    assert_int_equal(sizeof(struct ring_live), 72);
    assert_int_equal(sizeof(struct ring_node), 16);
    assert_int_equal(sizeof(struct ring_module), 80);
    assert_int_equal(sizeof(struct ring_device), 1536);
    assert_int_equal(sizeof(struct ring_header) % 64, 0);
    assert_int_equal(offsetof(struct ring_header, lock) % 64, 0);
    assert_int_equal(ring_slots_for(1000), 1024);
    assert_int_equal(ring_slots_for(1024), 1024);
    assert_int_equal(ring_slots_for(1), 64);
    uint64_t place;
    assert_int_equal(ring_table_chunk(0, 256, &place), 0);
    assert_int_equal(ring_table_chunk(255, 256, &place), 0);
    assert_int_equal(place, 255);
    assert_int_equal(ring_table_chunk(256, 256, &place), 1);
    assert_int_equal(place, 0);
    assert_int_equal(ring_table_chunk(767, 256, &place), 1);
    assert_int_equal(place, 511);
    assert_int_equal(ring_table_chunk(768, 256, &place), 2);
}

/* --- entries ------------------------------------------------------------------------------------------------------- */

static void record_a_few(void *context)
{
    (void)context;
    uint8_t uuid[16] = {1, 2, 3};
    setenv("RANK", "3", 1);
    setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
    setenv("SECRET_TOKEN", "not to be kept", 1);
    start(0, 0);
    recorder_device(0, "Test GPU", uuid, UINT64_C(80) << 30);
    recorder_driver(13000, "/usr/lib/libcuda.so.1");
    struct record_event event = event_of(RECORD_SEGMENT_ALLOC, BASE, 1 << 20);
    event.requested = (1 << 20) - 100;
    event.stream = 7;
    if (recorder_event(&event) != 1)
        _exit(1);
    event = event_of(RECORD_SEGMENT_ALLOC, BASE + (4 << 20), 3 << 20);
    event.kind = RECORD_ASYNC;
    event.pool = 0xabcdef;
    event.stream_unknown = true;
    recorder_event(&event);
    event = event_of(RECORD_OOM, UINT64_C(123456), UINT64_C(5) << 30);
    event.result = 2;
    recorder_event(&event);
    put_free(BASE);
    recorder_device_free(0, UINT64_C(70) << 30, 3 << 20);
    recorder_finish();
}

static void entries_and_facts_come_back(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_a_few, NULL);
    assert_int_equal(snapshot->source, SOURCE_RECORDED);
    assert_int_equal(snapshot->entries.count, 4);
    struct entry entry = snapshot_entry(snapshot, 0);
    assert_int_equal(entry.action, ACTION_SEGMENT_ALLOC);
    assert_int_equal(entry.address, BASE);
    assert_int_equal(entry.size, 1 << 20);
    assert_int_equal(entry.stream, 7);
    assert_int_equal(entry.context, CONTEXT_NONE);
    assert_string_equal(snapshot_content_text(snapshot, snapshot->calls[entry.call], NULL), "cuMemAlloc");
    assert_true(entry.thread > 1);
    assert_true(llabs(entry.time - (int64_t)time(NULL) * 1000000) < 60000000);
    entry = snapshot_entry(snapshot, 1);
    assert_int_equal(entry.kind, MEMORY_ASYNC);
    assert_int_equal(entry.flags, ENTRY_STREAM_UNKNOWN);
    assert_int_equal(snapshot->pools[entry.pool].id[0], 0);
    assert_int_equal(snapshot->pools[entry.pool].id[1], 1);
    entry = snapshot_entry(snapshot, 2);
    assert_int_equal(entry.action, ACTION_OOM);
    assert_int_equal(entry.address, 123456);
    assert_int_equal(entry.size, UINT64_C(5) << 30);
    entry = snapshot_entry(snapshot, 3);
    assert_int_equal(entry.action, ACTION_SEGMENT_FREE);
    assert_int_equal(entry.size, 1 << 20); /* found in the table of live memory */
    assert_int_equal(entry.flags, 0);
    for (size_t i = 1; i < 4; i++)
        assert_true(snapshot->entries.time[i] >= snapshot->entries.time[i - 1]);

    const struct process *process = &snapshot->processes[0];
    assert_true(process->implied_blocks);
    assert_false(process->incomplete);
    assert_int_equal(process->rank, 3);
    assert_true(process->pid > 1 && process->parent == getpid());
    assert_non_null(strstr(snapshot_content_text(snapshot, process->program, NULL), "test_ring"));
    assert_string_equal(snapshot_content_text(snapshot, process->driver, NULL), "13.0");
    assert_true(process->end_time >= process->start_time && process->start_time > 0);
    const struct device *device = &snapshot->devices[0];
    assert_int_equal(snapshot->device_count, 1);
    assert_string_equal(snapshot_content_text(snapshot, device->name, NULL), "Test GPU");
    assert_true(device->has_uuid && device->uuid[2] == 3);
    assert_int_equal(device->total, UINT64_C(80) << 30);
    assert_int_equal(device->free_at_end, UINT64_C(70) << 30);
    assert_int_equal(device->max_entries, RING_DEFAULT_ENTRIES);
    assert_int_equal(device->lost_entries, 0);
    assert_int_equal(snapshot->trace_count, 1);
    assert_true(device->has_stats && device->stats_exact);
    assert_int_equal(device->stats.num_ooms, 1);
    assert_int_equal(device->stats.num_device_alloc, 2);
    assert_int_equal(device->stats.num_device_free, 1);
    const struct memory_stat *bytes = device->stats.kinds[MEMORY_STAT_RESERVED_BYTES];
    assert_int_equal(bytes[MEMORY_POOL_ALL].current, 3 << 20);
    assert_int_equal(bytes[MEMORY_POOL_ALL].peak, 4 << 20);
    assert_int_equal(bytes[MEMORY_POOL_ALL].freed, 1 << 20);
    assert_int_equal(bytes[MEMORY_POOL_SMALL].peak, 1 << 20);
    assert_int_equal(bytes[MEMORY_POOL_LARGE].allocated, 3 << 20);
    assert_int_equal(device->stats.kinds[MEMORY_STAT_REQUESTED_BYTES][MEMORY_POOL_ALL].peak, (4 << 20) - 100);
    assert_int_equal(device->stats.kinds[MEMORY_STAT_ALLOCATION][MEMORY_POOL_ALL].peak, 2);

    assert_int_equal(snapshot->end.segment_count, 1);
    assert_int_equal(snapshot->end.segments[0].address, BASE + (4 << 20));
    assert_int_equal(snapshot->end.segments[0].kind, MEMORY_ASYNC);
    assert_true(snapshot->end.segments[0].is_large);
    assert_false(snapshot->end.segments[0].is_expandable);
    assert_int_equal(snapshot->end.blocks[0].state, BLOCK_ACTIVE_ALLOCATED);
    assert_int_equal(snapshot->end.moment, 4);
    value setting;
    assert_true(snapshot_get_setting(snapshot, "PYTORCH_CUDA_ALLOC_CONF", &setting));
    assert_false(snapshot_get_setting(snapshot, "SECRET_TOKEN", &setting));
    snapshot_free(snapshot);
}

/* --- what is lost --------------------------------------------------------------------------------------------------- */

static void record_1500(void *context)
{
    uint64_t survivors = *(uint64_t *)context;
    start(1000, 0);
    recorder_device(1, "idle", NULL, 0);
    for (uint64_t i = 0; i < survivors; i++)
        put_alloc(BASE + (i << 21), 2 << 20);
    for (uint64_t i = survivors; i < 1500; i += 2) {
        put_alloc(BASE + (UINT64_C(1) << 40), 512 * (i + 1));
        put_free(BASE + (UINT64_C(1) << 40));
    }
    recorder_finish();
}

static void ring_of_1000_keeps_the_newest_1000_of_1500(void **state)
{
    (void)state;
    uint64_t survivors = 100;
    struct snapshot *snapshot = recorded(record_1500, &survivors);
    assert_int_equal(snapshot->entries.count, 1000);
    /* Events 500 to 1499: pairs begin with number 100, so the first is an allocation. */
    assert_int_equal(snapshot->entries.action[0], ACTION_SEGMENT_ALLOC);
    assert_int_equal(snapshot->entries.size[0], 512 * 501);
    assert_int_equal(snapshot->entries.size[999], 512 * 1499);
    assert_int_equal(snapshot->device_count, 2);
    assert_int_equal(snapshot->devices[0].max_entries, 1000);
    assert_int_equal(snapshot->devices[0].lost_entries, 500);
    assert_int_equal(snapshot->devices[1].lost_entries, 0);
    assert_int_equal(snapshot->devices[1].max_entries, 1000);
    /* The survivors' own events are long gone. */
    assert_int_equal(snapshot->end.segment_count, 100);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(snapshot->end.segments[i].address, BASE + (i << 21));
        assert_int_equal(snapshot->end.segments[i].total_size, 2 << 20);
        assert_true(snapshot->end.blocks[i].flags & BLOCK_BEFORE_RECORDING);
    }
    assert_true(snapshot->devices[0].stats_exact);
    const struct memory_stat *bytes = &snapshot->devices[0].stats.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL];
    assert_int_equal(bytes->current, 200 << 20);
    assert_int_equal(bytes->peak, (200 << 20) + 512 * 1499);
    assert_int_equal(snapshot->devices[0].stats.kinds[MEMORY_STAT_SEGMENT][MEMORY_POOL_ALL].allocated, 800);
    snapshot_free(snapshot);
}

static void record_5000_on_a_power_of_two(void *context)
{
    (void)context;
    start(2000, 0);
    for (uint64_t i = 1; i <= 5000; i++)
        put_alloc(BASE + i * 4096, i);
}

static void ring_holds_events_3001_to_5000_and_all_live_memory(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_5000_on_a_power_of_two, NULL);
    assert_int_equal(snapshot->entries.count, 2000);
    for (size_t i = 0; i < 2000; i++)
        assert_int_equal(snapshot->entries.size[i], 3001 + i);
    assert_int_equal(snapshot->end.segment_count, 5000);
    assert_int_equal(snapshot->end.segments[0].total_size, 1);
    assert_int_equal(snapshot->end.segments[4999].total_size, 5000);
    assert_true(snapshot->end.blocks[2999].flags & BLOCK_BEFORE_RECORDING);
    assert_false(snapshot->end.blocks[3000].flags & BLOCK_BEFORE_RECORDING);
    snapshot_free(snapshot);
}

static void record_many_live(void *context)
{
    (void)context;
    start(1000, 0);
    for (uint64_t i = 0; i < 60000; i++)
        put_alloc(BASE + i * 512, 512);
    for (uint64_t i = 0; i < 60000; i += 2)
        put_free(BASE + i * 512);
}

static void table_of_live_memory_grows(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_many_live, NULL);
    assert_int_equal(snapshot->end.segment_count, 30000);
    for (size_t i = 0; i < 30000; i++)
        assert_int_equal(snapshot->end.segments[i].address, BASE + (2 * i + 1) * 512);
    assert_int_equal(snapshot->devices[0].stats.kinds[MEMORY_STAT_SEGMENT][MEMORY_POOL_ALL].peak, 60000);
    assert_false(snapshot->processes[0].incomplete);
    snapshot_free(snapshot);
}

static void record_two_devices(void *context)
{
    (void)context;
    start(64, 0);
    for (uint64_t i = 0; i < 100; i++) {
        struct record_event event = event_of(RECORD_SEGMENT_ALLOC, BASE + i * 4096, 1000 + i);
        event.device = i % 4 == 3 ? 5 : 2;
        recorder_event(&event);
    }
    struct record_event event = event_of(RECORD_SEGMENT_ALLOC, BASE, 1);
    event.device = RING_DEVICES;
    if (recorder_event(&event) != 0)
        _exit(1);
}

static void every_device_has_its_own_capacity(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_two_devices, NULL);
    assert_int_equal(snapshot->device_count, 2);
    assert_int_equal(snapshot->devices[0].ordinal, 2);
    assert_int_equal(snapshot->devices[0].lost_entries, 75 - 64);
    assert_int_equal(snapshot->devices[1].ordinal, 5);
    assert_int_equal(snapshot->devices[1].lost_entries, 0);
    assert_int_equal(snapshot->entries.count, 64 + 25);
    assert_int_equal(snapshot->trace_count, 6);
    assert_int_equal(snapshot->entries.size[88], 1099); /* one order for both */
    assert_int_equal(snapshot->end.segment_count, 100);
    assert_true(snapshot->processes[0].incomplete); /* an ordinal that has no ring */
    snapshot_free(snapshot);
}

/* --- frees that fail, ranges, replaced ------------------------------------------------------------------------------ */

static void record_failed_free(void *context)
{
    (void)context;
    start(0, 0);
    put_alloc(BASE, 4096);
    put_free(BASE);
    struct record_event failed = event_of(RECORD_SEGMENT_FREE, BASE, RECORD_UNKNOWN);
    failed.result = 700;
    recorder_event(&failed);
    uint64_t size = 0;
    uint16_t device = 9;
    if (!recorder_find(BASE, &size, &device) || size != 4096 || device != 0)
        _exit(1);
    /* Of memory that nobody knows: there is nothing to bring back. */
    put_free(BASE + 8192);
    failed.address = BASE + 8192;
    recorder_event(&failed);
    if (recorder_find(BASE + 8192, &size, &device))
        _exit(2);
}

static void failed_free_is_undone(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_failed_free, NULL);
    assert_int_equal(snapshot->entries.count, 5);
    assert_int_equal(snapshot->entries.flags[1], 0);
    assert_int_equal(snapshot->entries.flags[2], ENTRY_FAILED);
    assert_int_equal(snapshot->entries.size[2], 4096);
    assert_int_equal(snapshot->entries.flags[3], ENTRY_REQUESTED_UNKNOWN);
    assert_int_equal(snapshot->end.segment_count, 1);
    assert_int_equal(snapshot->end.segments[0].address, BASE);
    const struct memory_stat *count = &snapshot->devices[0].stats.kinds[MEMORY_STAT_SEGMENT][MEMORY_POOL_ALL];
    assert_int_equal(count->current, 1);
    assert_int_equal(count->freed, 0);
    assert_int_equal(count->allocated, 1);
    assert_int_equal(count->peak, 1);
    assert_int_equal(snapshot->devices[0].stats.num_device_free, 0);
    snapshot_free(snapshot);
}

static void record_mappings(void *context)
{
    (void)context;
    start(0, 0);
    for (uint64_t i = 0; i < 40; i++) {
        struct record_event event = event_of(RECORD_SEGMENT_MAP, BASE + (i << 21), 2 << 20);
        event.kind = RECORD_VIRTUAL;
        recorder_event(&event);
    }
    put(RECORD_SEGMENT_UNMAP, BASE, UINT64_C(38) << 21); /* one call, thirty-eight mappings */
    put(RECORD_SEGMENT_UNMAP, BASE + (UINT64_C(38) << 21), 2 << 20);
    struct record_event failed = event_of(RECORD_SEGMENT_UNMAP, BASE + (UINT64_C(38) << 21), 2 << 20);
    failed.result = 1;
    recorder_event(&failed);
}

static void unmapping_covers_all_of_its_range(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_mappings, NULL);
    assert_int_equal(snapshot->end.segment_count, 2);
    assert_int_equal(snapshot->end.segments[0].address, BASE + (UINT64_C(38) << 21));
    assert_true(snapshot->end.segments[0].is_expandable);
    assert_int_equal(snapshot->end.segments[1].address, BASE + (UINT64_C(39) << 21));
    const struct memory_stat *bytes = &snapshot->devices[0].stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
    assert_int_equal(bytes->current, 4 << 20);
    assert_int_equal(bytes->peak, 80 << 20);
    assert_int_equal(bytes->freed, 76 << 20);
    snapshot_free(snapshot);
}

static void record_long_unmapping_that_fails(void *context)
{
    (void)context;
    start(0, 0);
    for (uint64_t i = 0; i < RING_REMOVED + 4; i++)
        put(RECORD_SEGMENT_MAP, BASE + (i << 21), 2 << 20);
    put(RECORD_SEGMENT_UNMAP, BASE, (uint64_t)(RING_REMOVED + 4) << 21);
    struct record_event failed = event_of(RECORD_SEGMENT_UNMAP, BASE, (uint64_t)(RING_REMOVED + 4) << 21);
    failed.result = 1;
    recorder_event(&failed);
}

static void unmapping_that_failed_gives_back_as_much_in_the_state_as_in_the_numbers(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_long_unmapping_that_fails, NULL);
    const struct memory_stat *bytes = &snapshot->devices[0].stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
    assert_int_equal(snapshot->end.segment_count, RING_REMOVED);
    assert_int_equal(bytes->current, (uint64_t)RING_REMOVED << 21);
    snapshot_free(snapshot);
}

static void record_unseen_free(void *context)
{
    (void)context;
    start(0, 0);
    put_alloc(BASE, 4096);
    put_alloc(BASE, 8192);
    struct record_event host = event_of(RECORD_SEGMENT_ALLOC, BASE + (1 << 20), 64 << 20);
    host.kind = RECORD_HOST;
    recorder_event(&host);
}

static void memory_at_an_address_thought_live_replaces_it_and_host_memory_is_no_device_memory(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_unseen_free, NULL);
    assert_int_equal(snapshot->end.segment_count, 2);
    assert_int_equal(snapshot->end.segments[0].total_size, 8192);
    assert_int_equal(snapshot->end.segments[1].kind, MEMORY_HOST);
    const struct memory_stat *bytes = &snapshot->devices[0].stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
    assert_int_equal(bytes->current, 8192);
    assert_int_equal(bytes->peak, 8192);
    snapshot_free(snapshot);
}

static bool count_segment(uint64_t address, uint16_t device, uint8_t kind, void *context)
{
    uint64_t *sum = context;
    *sum += address - BASE + device + kind;
    return true;
}

static void record_and_walk(void *context)
{
    (void)context;
    start(0, 0);
    put_alloc(BASE + 512, 1);
    put_alloc(BASE + 1024, 1);
    put_alloc(BASE + 2048, 1);
    put_free(BASE + 1024);
    uint64_t sum = 0;
    recorder_each_segment(count_segment, &sum);
    if (sum != 512 + 2048)
        _exit(1);
}

static void live_segments_can_be_walked(void **state)
{
    (void)state;
    snapshot_free(recorded(record_and_walk, NULL));
}

/* --- fork, files ---------------------------------------------------------------------------------------------------- */

static void record_and_fork(void *context)
{
    (void)context;
    start(0, 0);
    put_alloc(BASE, 4096);
    pid_t quiet = fork();
    if (!quiet)
        _exit(0);
    waitpid(quiet, NULL, 0);
    pid_t child = fork();
    if (!child) {
        if (put_alloc(BASE + 4096, 1111) != 1)
            _exit(1);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status)
        _exit(2);
    if (put_alloc(BASE + 8192, 2222) != 2)
        _exit(3);
}

struct found {
    int files;
    uint64_t sizes[4];
    size_t segments[4];
    bool modes_ok;
};

static void look_at(const char *path, void *context)
{
    struct found *found = context;
    struct snapshot *snapshot = read_ring(path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    found->modes_ok = found->modes_ok && (status.st_mode & 07777) == 0600 && status.st_blocks * 512 >= status.st_size;
    found->segments[found->files] = snapshot->end.segment_count;
    for (size_t i = 0; i < snapshot->entries.count; i++)
        found->sizes[found->files] += snapshot->entries.size[i];
    found->files++;
    snapshot_free(snapshot);
}

static void forked_child_has_its_own_file_with_an_empty_table(void **state)
{
    (void)state;
    struct found found = {.modes_ok = true};
    mode_t old = umask(0);
    int status = in_child(record_and_fork, NULL);
    umask(old);
    assert_int_equal(status, 0);
    assert_int_equal(each_file(look_at, &found), 2);
    assert_true(found.modes_ok);
    int child = found.sizes[0] == 1111 ? 0 : 1;
    assert_int_equal(found.sizes[child], 1111);
    assert_int_equal(found.segments[child], 1);
    assert_int_equal(found.sizes[!child], 4096 + 2222);
    assert_int_equal(found.segments[!child], 2);
    each_file(remove_file, NULL);
}

static void record_nothing(void *context)
{
    (void)context;
    start(0, 32);
    recorder_device(0, "x", NULL, 1);
    recorder_finish();
}

static void no_event_leaves_no_file(void **state)
{
    (void)state;
    assert_int_equal(in_child(record_nothing, NULL), 0);
    assert_int_equal(each_file(NULL, NULL), 0);
}

static void record_one(void *context)
{
    (void)context;
    start(0, 0);
    put_alloc(BASE, 4096);
}

static void two_runs_leave_two_files(void **state)
{
    (void)state;
    assert_int_equal(in_child(record_one, NULL), 0);
    assert_int_equal(in_child(record_one, NULL), 0);
    struct found found = {.modes_ok = true};
    assert_int_equal(each_file(look_at, &found), 2);
    assert_int_equal(found.segments[0] + found.segments[1], 2);
    each_file(remove_file, NULL);
}

static void header_alone_says_who_wrote_it(void **state)
{
    (void)state;
    struct ring_facts facts;
    struct error err;
    assert_int_equal(in_child(record_one, NULL), 0);
    assert_int_equal(ring_read_facts(only_file(), &facts, &err), 0);
    assert_int_equal(facts.parent, getpid());
    assert_int_equal(facts.events, 1);
    assert_false(facts.finished);
    assert_string_equal(facts.output, "snapshot.bin");
    assert_int_equal(facts.rank, -1);
    each_file(remove_file, NULL);
}

/* --- killed --------------------------------------------------------------------------------------------------------- */

struct progress {
    volatile uint64_t published; /* events that returned */
};

/* What event i of the endless recording does: the address; negative: it is a free. */
static int64_t step(uint64_t i)
{
    return i % 3 == 2 ? -(int64_t)(i / 3 % 5000 + 1) : (int64_t)(i % 15000 + 1);
}

static void record_until_killed(void *context)
{
    struct progress *progress = context;
    alarm(100);
    start(0, 16);
    for (uint64_t i = 0;; i++) {
        int64_t what = step(i);
        progress->published = what < 0 ? put_free(BASE + (uint64_t)-what * 4096)
                                       : put_alloc(BASE + (uint64_t)what * 4096, 4096);
    }
}

static bool is_state_after(const struct state *end, uint64_t events)
{
    static bool live[15001];
    memset(live, 0, sizeof(live));
    for (uint64_t i = 0; i < events; i++)
        live[llabs(step(i))] = step(i) > 0;
    size_t expected = 0;
    for (size_t i = 0; i <= 15000; i++)
        if (live[i] && (expected >= end->segment_count || end->segments[expected++].address != BASE + i * 4096))
            return false;
    return expected == end->segment_count;
}

static void killed_at_any_moment_every_published_event_is_there(void **state)
{
    (void)state;
    struct progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(progress, MAP_FAILED);
    for (int round = 0; round < 20; round++) {
        progress->published = 0;
        pid_t child = fork();
        if (!child)
            record_until_killed(progress);
        while (!progress->published)
            usleep(100);
        usleep((useconds_t)(round * round * 137 % 30011));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        struct snapshot *snapshot = read_ring(only_file());
        /* One ring, one thread: entries are the newest of 1, 2, 3, ...; what was published is all there. */
        uint64_t count = snapshot->entries.count + snapshot->devices[0].lost_entries;
        assert_in_range(count, progress->published, progress->published + 2);
        if (progress->published <= RING_DEFAULT_ENTRIES)
            assert_in_range(snapshot->entries.count, progress->published, progress->published + 1);
        /* And the state is the one after the last entry; an event that was cut short is counted as lost. */
        assert_true(is_state_after(&snapshot->end, count) || is_state_after(&snapshot->end, count - 1));
        snapshot_free(snapshot);
        each_file(remove_file, NULL);
    }
    munmap(progress, sizeof(*progress));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_actions_and_kinds_agree_with_the_snapshot),
        cmocka_unit_test(layout_keeps_its_sizes),
        cmocka_unit_test(entries_and_facts_come_back),
        cmocka_unit_test(ring_of_1000_keeps_the_newest_1000_of_1500),
        cmocka_unit_test(ring_holds_events_3001_to_5000_and_all_live_memory),
        cmocka_unit_test(table_of_live_memory_grows),
        cmocka_unit_test(every_device_has_its_own_capacity),
        cmocka_unit_test(failed_free_is_undone),
        cmocka_unit_test(unmapping_covers_all_of_its_range),
        cmocka_unit_test(unmapping_that_failed_gives_back_as_much_in_the_state_as_in_the_numbers),
        cmocka_unit_test(memory_at_an_address_thought_live_replaces_it_and_host_memory_is_no_device_memory),
        cmocka_unit_test(live_segments_can_be_walked),
        cmocka_unit_test(forked_child_has_its_own_file_with_an_empty_table),
        cmocka_unit_test(no_event_leaves_no_file),
        cmocka_unit_test(two_runs_leave_two_files),
        cmocka_unit_test(header_alone_says_who_wrote_it),
        cmocka_unit_test(killed_at_any_moment_every_published_event_is_there),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
