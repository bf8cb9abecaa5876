/* A ring file that is steered while it is written: pauses, marks, forgetting, copies of it.  Built a second time with
 * the thread sanitizer. */
#include "ring_support.h"

#include "analyze/moment.h"
#include "record/control.h"
#include "snapshot/state.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#define THREADS 4
#define ROUNDS 3000
#define MIB (UINT64_C(1) << 20)

/* As `ctl` has it: a mapping of its own. */
static struct ring_header *map_header(const char *path)
{
    int fd = open(path, O_RDWR);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct ring_header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        _exit(91);
    close(fd);
    return map;
}

static void take_ring(const char *path, void *context)
{
    if (!strstr(path, RING_COPY_OOM_WORD) && !strstr(path, RING_UNFINISHED))
        strcpy(context, path);
}

static struct ring_header *own_header(void)
{
    char path[600] = "";
    each_file(take_ring, path);
    return map_header(path);
}

static struct state_faults faults_of(const struct snapshot *snapshot)
{
    struct state_faults sum = {0};
    for (uint64_t moment = 0; moment <= snapshot->entries.count; moment++) {
        struct state state;
        struct state_faults faults;
        assert_int_equal(state_at_counting(snapshot, moment, &state, &faults, NULL), 0);
        assert_true(state.exact);
        sum.unknown_allocs += faults.unknown_allocs;
        sum.unknown_segments += faults.unknown_segments;
        sum.overlaps += faults.overlaps;
        sum.outside += faults.outside;
        state_free(&state);
    }
    return sum;
}

static void assert_no_faults(const struct snapshot *snapshot)
{
    struct state_faults faults = faults_of(snapshot);
    assert_int_equal(faults.unknown_allocs + faults.unknown_segments + faults.overlaps + faults.outside, 0);
}

/* Bytes that segments hold, and that blocks hold in them, after so many entries. */
static void sums_at(const struct snapshot *snapshot, uint64_t moment, uint64_t *reserved, uint64_t *allocated)
{
    struct state state;
    assert_int_equal(state_at(snapshot, moment, &state, NULL), 0);
    *reserved = *allocated = 0;
    for (size_t i = 0; i < state.segment_count; i++)
        *reserved += state.segments[i].total_size;
    for (size_t i = 0; i < state.block_count; i++)
        *allocated += state.blocks[i].state == BLOCK_ACTIVE_ALLOCATED ? state.blocks[i].size : 0;
    state_free(&state);
}

/* --- pauses ------------------------------------------------------------------------------------------------------- */

static uint64_t put_block(uint64_t address, uint64_t size)
{
    struct record_event event = event_of(RECORD_ALLOC, address, size);
    event.requested_unknown = true;
    uint64_t sequence = recorder_event(&event);
    recorder_holds_block(address / MIB * MIB, address, address + size);
    return sequence;
}

static void give_block(uint64_t address)
{
    struct record_event event = event_of(RECORD_FREE_REQUESTED, address, RECORD_UNKNOWN);
    event.requested_unknown = true;
    recorder_event(&event);
}

static void pause_amid_blocks(void *context)
{
    (void)context;
    start(1000, 0);
    put_alloc(BASE, MIB);
    put_block(BASE, 512);
    put_block(BASE + 512, 1024);
    struct ring_header *header = own_header();
    control_pause(header, true);
    give_block(BASE);                  /* was recorded: an entry */
    put_block(BASE, 256);              /* lives on */
    put_block(BASE + 2048, 512);       /* ends after the pause */
    put_block(BASE + 4096, 512);       /* comes and goes */
    give_block(BASE + 4096);
    put_alloc(BASE + 2 * MIB, MIB);    /* with a block that lives */
    put_block(BASE + 2 * MIB, 4096);
    put_alloc(BASE + 8 * MIB, 2 * MIB); /* comes and goes */
    put_block(BASE + 8 * MIB, 512);
    give_block(BASE + 8 * MIB);
    put_free(BASE + 8 * MIB);
    control_pause(header, false);
    give_block(BASE + 2048);
    put_block(BASE + 2048, 128);
}

static void paused_it_follows_blocks_and_segments(void **state)
{
    (void)state;
    static const uint64_t allocated[] = {0, 0, 512, 1536, 1024, 1024, 1280, 1792, 1792, 5888, 5376, 5376, 5504};
    struct snapshot *snapshot = recorded(pause_amid_blocks, NULL);
    assert_int_equal(snapshot->entries.count, 12);
    for (uint64_t moment = 0; moment <= 12; moment++) {
        uint64_t segments, blocks;
        sums_at(snapshot, moment, &segments, &blocks);
        assert_int_equal(blocks, allocated[moment]);
        assert_int_equal(segments, moment == 0 ? 0 : moment < 8 ? MIB : 2 * MIB);
    }
    assert_no_faults(snapshot);
    assert_int_equal(snapshot->processes[0].unrecorded, 10);
    assert_false(snapshot->processes[0].incomplete);
    const struct memory_stat *bytes = &snapshot->devices[0].stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
    assert_int_equal(bytes->current, 2 * MIB);
    assert_int_equal(bytes->peak, 4 * MIB);
    snapshot_free(snapshot);
}

/* Mappings that came in different ways go by one call. */
static void unmap_across_a_pause(void *context)
{
    (void)context;
    start(1000, 0);
    put(RECORD_SEGMENT_MAP, BASE, MIB);
    struct ring_header *header = own_header();
    control_pause(header, true);
    put(RECORD_SEGMENT_MAP, BASE + MIB, MIB);
    put(RECORD_SEGMENT_MAP, BASE + 4 * MIB, MIB);
    put(RECORD_SEGMENT_UNMAP, BASE, 2 * MIB);
    control_pause(header, false);
    put(RECORD_SEGMENT_UNMAP, BASE + 4 * MIB, MIB);
    put(RECORD_SEGMENT_MAP, BASE, MIB);
}

static void paused_ranges_are_followed(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(unmap_across_a_pause, NULL);
    uint64_t reserved, allocated;
    sums_at(snapshot, snapshot->entries.count, &reserved, &allocated);
    assert_int_equal(reserved, MIB);
    assert_int_equal(snapshot->devices[0].stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].current, MIB);
    assert_int_equal(snapshot->devices[0].stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL].peak, 3 * MIB);
    snapshot_free(snapshot);
}

static uint32_t hammering;
static struct ring_header *hammered;

/* Two addresses in three live on between rounds, so that all ways of being born and dying around a pause happen. */
static void *hammer(void *argument)
{
    uint64_t base = BASE + ((uint64_t)(uintptr_t)argument << 32);
    bool lives[61] = {false};
    for (uint64_t i = 0; i < ROUNDS; i++) {
        unsigned place = (unsigned)(i * 7 % 61);
        uint64_t address = base + place * MIB;
        if (lives[place])
            put_free(address);
        else if (i % 3 < 2)
            put_alloc(address, 4096 + place);
        lives[place] = !lives[place] && i % 3 < 2;
    }
    for (unsigned place = 0; place < 61; place++)
        if (lives[place])
            put_free(base + place * MIB);
    put_alloc(base, 4096);
    __atomic_fetch_sub(&hammering, 1, __ATOMIC_ACQ_REL);
    for (;;) /* as in test_ring_threads.c */
        pause();
    return NULL;
}

static void hammer_between_pauses(void *context)
{
    struct timespec moment = {0, 200000};
    pthread_t threads[THREADS];
    start(2000000, 0);
    put_alloc(BASE, 1);
    put_free(BASE);
    hammered = own_header();
    hammering = THREADS;
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)))
            _exit(1);
    for (unsigned turn = 0; __atomic_load_n(&hammering, __ATOMIC_ACQUIRE); turn++) {
        control_pause(hammered, turn % 2 == 0);
        if (context && turn % 7 == 0)
            recorder_keep_oom();
        nanosleep(&moment, NULL);
    }
}

static void pauses_at_any_time_lose_nothing_that_lives(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct snapshot *snapshot = recorded(hammer_between_pauses, NULL);
        assert_int_equal(snapshot->end.segment_count, THREADS);
        assert_true(snapshot->devices[0].stats_exact);
        assert_int_equal(snapshot->devices[0].stats.kinds[MEMORY_STAT_SEGMENT][MEMORY_POOL_ALL].current, THREADS);
        assert_true(snapshot->processes[0].unrecorded > 0);
        for (size_t i = 1; i < snapshot->entries.count; i++)
            assert_true(snapshot->entries.time[i] >= snapshot->entries.time[i - 1]);
        for (uint64_t moment = 0; moment < snapshot->entries.count; moment += 97) {
            struct state at;
            struct state_faults faults;
            assert_int_equal(state_at_counting(snapshot, moment, &at, &faults, NULL), 0);
            assert_int_equal(faults.unknown_segments + faults.overlaps, 0);
            state_free(&at);
        }
        snapshot_free(snapshot);
    }
}

/* --- forgetting --------------------------------------------------------------------------------------------------- */

static void record_twice(void *context)
{
    (void)context;
    start(64, 0);
    for (uint64_t i = 0; i < 100; i++) /* the ring comes round */
        put_alloc(BASE + i * MIB, 4096);
    control_forget(own_header());
    for (uint64_t i = 0; i < 10; i++)
        put_free(BASE + i * MIB);
    put_alloc(BASE, 4096);
}

static void what_was_forgotten_is_older_than_the_recording(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_twice, NULL);
    uint64_t reserved, allocated;
    assert_int_equal(snapshot->entries.count, 11);
    sums_at(snapshot, 0, &reserved, &allocated);
    assert_int_equal(reserved, 100 * 4096);
    sums_at(snapshot, 11, &reserved, &allocated);
    assert_int_equal(reserved, 91 * 4096);
    assert_no_faults(snapshot);
    assert_int_equal(snapshot->processes[0].unrecorded + snapshot->devices[0].lost_entries, 100);
    snapshot_free(snapshot);
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

static void set_marks(void *context)
{
    (void)context;
    start(1000, 0);
    put_alloc(BASE, 4096);
    struct ring_header *header = own_header();
    for (unsigned i = 0; i < RING_MARKS + 10; i++) {
        char name[80];
        snprintf(name, sizeof(name), "%03u-a-name-that-is-as-long-as-one-can-be-and-more", i);
        if (control_mark(header, name, strlen(name)) != (i < RING_MARKS))
            _exit(2);
        put_alloc(BASE + (i + 1) * MIB, 4096);
    }
    header->marks[7].state = RING_MARK_BUSY; /* whose setter died */
}

static void marks_stand_exactly_between_entries(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(set_marks, NULL);
    assert_int_equal(snapshot->annotation_count, RING_MARKS - 1);
    for (unsigned i = 0; i < RING_MARKS; i++) {
        char text[80];
        struct moment moment;
        struct error err = {0};
        uint64_t found = 0;
        snprintf(text, sizeof(text), "@mark:%03u-a-name-that-is-as-long-as-one-can-be-and-more", i);
        text[6 + CONTROL_MARK_NAME] = 0;
        assert_int_equal(moment_parse(text, &moment, &err), 0);
        int status = moment_resolve(snapshot, &moment, MOMENT_ALL_DEVICES, &found, &err);
        assert_int_equal(status, i == 7 ? STATUS_NOT_FOUND : STATUS_OK);
        assert_int_equal(found, i == 7 ? 0 : i + 1);
    }
    snapshot_free(snapshot);
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static void copy_while_hammering(void *context)
{
    struct recorder_options options = ring_options(2000, 0);
    char message[256];
    options.oom_copies = 50;
    if (recorder_start(&options, message, sizeof(message)))
        _exit(90);
    hammer_between_pauses(context);
}

static void check_copy(const char *path, void *context)
{
    if (!strstr(path, RING_COPY_OOM_WORD))
        return;
    struct snapshot *snapshot = read_ring(path);
    struct state_faults faults;
    struct state state;
    value content;
    ++*(int *)context;
    assert_int_equal(state_at_counting(snapshot, snapshot->entries.count / 2, &state, &faults, NULL), 0);
    assert_int_equal(faults.unknown_segments, 0);
    assert_true(snapshot_get_setting(snapshot, "kept_at", &content));
    state_free(&state);
    snapshot_free(snapshot);
}

static void copies_under_load_hold_together(void **state)
{
    (void)state;
    int copies = 0;
    for (int round = 0; round < 50 && !copies; round++) { /* it may end before the first failure on a busy machine */
        assert_int_equal(in_child(copy_while_hammering, &copies), 0);
        each_file(check_copy, &copies);
        each_file(remove_file, NULL);
    }
    assert_true(copies > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(paused_it_follows_blocks_and_segments, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(paused_ranges_are_followed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(pauses_at_any_time_lose_nothing_that_lives, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_was_forgotten_is_older_than_the_recording, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(marks_stand_exactly_between_entries, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(copies_under_load_hold_together, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
