/* Many threads record while others read.  Built a second time with the thread sanitizer. */
#include "ring_support.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 4000

static unsigned finished;

/* Ranges that open and close between the events, with names that are new now and then. */
static void annotate_some(uint64_t i)
{
    char name[32];
    int length = snprintf(name, sizeof(name), "range %u", (unsigned)i / 50);
    if (i % 4 == 0)
        recorder_annotate(RECORD_RANGE_PUSH, 0, 0, name, (size_t)length);
    else if (i % 4 == 2)
        recorder_annotate(RECORD_RANGE_POP, 0, 0, NULL, 0);
}

static void *hammer(void *argument)
{
    uint64_t base = BASE + ((uint64_t)(uintptr_t)argument << 32);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct record_event event = event_of(RECORD_SEGMENT_ALLOC, base + i % 64 * 4096, 4096 + i % 2 * (2 << 20));
        event.device = i % 8 == 7 ? 1 : 0;
        event.pool = i % 16 == 3 ? 0x1234 : 0;
        annotate_some(i);
        recorder_event(&event);
        uint64_t size = 0;
        uint16_t device = 0;
        if (!recorder_find(event.address, &size, &device) || size != event.size || device != event.device)
            _exit(3);
        if (i % 64 < 60)
            put_free(event.address);
        else
            put_free(event.address), recorder_device_free(0, i, 0);
    }
    put_alloc(base + (1 << 30), 4096);
    __atomic_fetch_add(&finished, 1, __ATOMIC_ACQ_REL);
    for (;;) /* libunwind's end of a thread comes after the thread sanitizer's, and does not survive it */
        pause();
}

static void wait_for_all(void)
{
    while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < THREADS)
        usleep(1000);
}

static void record_threads(void *context)
{
    unsigned depth = *(unsigned *)context;
    pthread_t threads[THREADS];
    start(1000, depth); /* small, so that writers come round to each other's slots */
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)))
            _exit(1);
    wait_for_all();
}

static void check_end(struct snapshot *snapshot)
{
    assert_int_equal(snapshot->end.segment_count, THREADS);
    uint64_t total = 0;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct device *device = &snapshot->devices[i];
        assert_true(device->stats_exact);
        total += (uint64_t)device->stats.num_device_alloc;
        assert_int_equal(device->stats.kinds[MEMORY_STAT_SEGMENT][MEMORY_POOL_ALL].current, device->ordinal ? 0 : THREADS);
    }
    assert_int_equal(total, THREADS * (ROUNDS + 1));
    for (size_t i = 1; i < snapshot->entries.count; i++)
        assert_true(snapshot->entries.time[i] >= snapshot->entries.time[i - 1]);
}

static void threads_lose_nothing_and_statistics_are_exact(void **state)
{
    (void)state;
    for (unsigned depth = 0; depth <= 32; depth += 32) {
        struct snapshot *snapshot = recorded(record_threads, &depth);
        check_end(snapshot);
        uint64_t events = 0;
        for (size_t i = 0; i < snapshot->device_count; i++)
            events += snapshot->devices[i].lost_entries;
        assert_int_equal(events + snapshot->entries.count, THREADS * (2 * ROUNDS + 1));
        assert_int_equal(snapshot->entries.count, 2000);
        assert_int_equal(snapshot->annotation_count, THREADS * ROUNDS / 2);
        snapshot_free(snapshot);
    }
}

/* Each event of the live recording says its own number in every field: a torn one would disagree with itself. */
static void *consistent(void *argument)
{
    uint64_t base = (uint64_t)(uintptr_t)argument << 40;
    for (uint64_t i = 1;; i++) {
        struct record_event event = {.action = RECORD_OOM, .address = base + i, .size = (base + i) * 3,
                                     .stream = (int64_t)((base + i) * 5), .requested = RECORD_UNKNOWN};
        recorder_event(&event);
    }
    return NULL;
}

static void record_forever(void *context)
{
    (void)context;
    pthread_t thread;
    alarm(100);
    start(64, 0); /* lapped all the time */
    if (pthread_create(&thread, NULL, consistent, (void *)1))
        _exit(1);
    consistent((void *)2);
}

static void live_file_is_read_without_torn_entries(void **state)
{
    (void)state;
    pid_t child = fork();
    if (!child) {
        record_forever(NULL);
        _exit(1);
    }
    while (!each_file(NULL, NULL))
        usleep(1000);
    char path[600];
    do
        each_file(copy_path, path);
    while (strstr(path, RING_UNFINISHED));
    uint64_t entries = 0;
    for (int round = 0; round < 200; round++) {
        struct snapshot *snapshot = read_ring(path);
        for (size_t i = 0; i < snapshot->entries.count; i++) {
            struct entry entry = snapshot_entry(snapshot, i);
            assert_int_equal(entry.size, entry.address * 3);
            assert_int_equal(entry.stream, entry.address * 5);
        }
        entries += snapshot->entries.count;
        snapshot_free(snapshot);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(entries > 0);
    struct snapshot *snapshot = read_ring(path);
    assert_in_range(snapshot->entries.count, 62, 64);
    snapshot_free(snapshot);
    each_file(remove_file, NULL);
}

/* One thread forks while the others record. */
static void record_and_fork(void *context)
{
    (void)context;
    pthread_t threads[THREADS];
    start(1000, 16);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)))
            _exit(1);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(20); /* a hang would be a locked lock */
            put_alloc(BASE, 77);
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status)
            _exit(2);
    }
    wait_for_all();
}

static void count_children(const char *path, void *context)
{
    struct snapshot *snapshot = read_ring(path);
    if (snapshot->entries.count == 1 && snapshot->entries.size[0] == 77)
        ++*(int *)context;
    snapshot_free(snapshot);
}

static void children_forked_among_recording_threads_do_not_hang(void **state)
{
    (void)state;
    int children = 0;
    assert_int_equal(in_child(record_and_fork, NULL), 0);
    assert_int_equal(each_file(count_children, &children), 11);
    assert_int_equal(children, 10);
    each_file(remove_file, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_lose_nothing_and_statistics_are_exact),
        cmocka_unit_test(live_file_is_read_without_torn_entries),
        cmocka_unit_test(children_forked_among_recording_threads_do_not_hang),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
