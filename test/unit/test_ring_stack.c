/* Native stacks: taken, shared, attributed to the right library, and never in the way. */
#include "ring_support.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <time.h>

/* Built beside this program. */
static const char *plugin(const char *name)
{
    static char path[600];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
    path[length < 0 ? 0 : length] = 0;
    snprintf(strrchr(path, '/') + 1, 64, "libring_%s.so", name);
    return path;
}

/* As the wrappers of the preloaded library: the frames up to this one are ours. */
static __attribute__((noinline)) uint64_t wrapper(enum record_action action, uint64_t address, uint64_t size)
{
    struct record_event event = event_of(action, address, size);
    event.skip = __builtin_return_address(0);
    uint64_t sequence = recorder_event(&event);
    __asm__ volatile("" ::: "memory");
    return sequence;
}

static __attribute__((noinline)) uint64_t innermost(uint64_t address)
{
    uint64_t sequence = wrapper(RECORD_SEGMENT_ALLOC, address, 4096);
    __asm__ volatile("" ::: "memory");
    return sequence;
}

static __attribute__((noinline)) uint64_t middle(uint64_t address)
{
    uint64_t sequence = innermost(address);
    __asm__ volatile("" ::: "memory");
    return sequence;
}

static void descend(unsigned depth, uint64_t address);
static void (*volatile deeper)(unsigned depth, uint64_t address) = descend; /* no compiler sees through it */

static __attribute__((noinline)) void descend(unsigned depth, uint64_t address)
{
    if (depth)
        deeper(depth - 1, address);
    else
        middle(address);
    __asm__ volatile("" ::: "memory");
}

/* Frame n of an entry, 0 the innermost; NULL beyond the last. */
static const struct frame *frame_of(const struct snapshot *snapshot, size_t entry, unsigned n)
{
    uint32_t stack = snapshot_context_stack(snapshot, snapshot->entries.context[entry]);
    while (n-- && stack != STACK_EMPTY)
        stack = snapshot->stacks[stack].parent;
    return stack == STACK_EMPTY ? NULL : &snapshot->frames[snapshot->stacks[stack].frame];
}

static unsigned depth_of(const struct snapshot *snapshot, size_t entry)
{
    return snapshot->stacks[snapshot_context_stack(snapshot, snapshot->entries.context[entry])].depth;
}

static const char *module_of(const struct snapshot *snapshot, const struct frame *frame)
{
    return frame->module == NONE32
               ? ""
               : snapshot_content_text(snapshot, snapshot->modules[frame->module].path, NULL);
}

/* Does the frame return into this function?  The child that recorded had our addresses. */
static bool is_in(const struct snapshot *snapshot, const struct frame *frame, uint64_t (*function)(uint64_t))
{
    uint64_t pc = frame->offset + (frame->module == NONE32 ? 0 : snapshot->modules[frame->module].load_address);
    return pc > (uintptr_t)function && pc < (uintptr_t)function + 128;
}

static void record_stacks(void *context)
{
    (void)context;
    start(0, 64);
    for (volatile int i = 0; i < 3; i++) /* one call, not three of an unrolled loop */
        middle(BASE + (uint64_t)i * 4096);
    descend(3, BASE + (1 << 20));
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void frames_begin_at_the_caller_of_the_wrapper(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_stacks, NULL);
    assert_int_equal(snapshot->entries.count, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct frame *frame = frame_of(snapshot, i, 0);
        assert_non_null(frame);
        assert_int_equal(frame->flags & FRAME_NATIVE, FRAME_NATIVE);
        assert_true(is_in(snapshot, frame, innermost));
        assert_true(is_in(snapshot, frame_of(snapshot, i, 1), middle));
        assert_non_null(strstr(module_of(snapshot, frame), "test_ring_stack"));
    }
    assert_int_equal(depth_of(snapshot, 3), depth_of(snapshot, 0) + 4);
    /* Equal stacks are one stack; each call has its own context. */
    assert_int_equal(snapshot_context_stack(snapshot, snapshot->entries.context[0]),
                     snapshot_context_stack(snapshot, snapshot->entries.context[1]));
    assert_int_not_equal(snapshot->entries.context[0], snapshot->entries.context[1]);
    assert_int_equal(snapshot->end.blocks[0].context, snapshot->entries.context[0]);
    unsigned depth = depth_of(snapshot, 0);
    const struct frame *outermost = frame_of(snapshot, 0, depth - 1);
    assert_int_equal(outermost->flags & FRAME_TRUNCATED, 0); /* the program's entry */
    for (size_t i = 0; i < snapshot->module_count; i++)
        if (strstr(snapshot_content_text(snapshot, snapshot->modules[i].path, NULL), "test_ring_stack"))
            assert_true(snapshot->modules[i].build_id_length >= 8);
    snapshot_free(snapshot);
}

static void record_shallow(void *context)
{
    (void)context;
    start(0, 5);
    descend(30, BASE);
    __asm__ volatile("" ::: "memory");
}

static void depth_is_kept_and_the_cut_is_marked(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_shallow, NULL);
    assert_int_equal(depth_of(snapshot, 0), 5);
    assert_int_equal(frame_of(snapshot, 0, 4)->flags & FRAME_TRUNCATED, FRAME_TRUNCATED);
    assert_int_equal(frame_of(snapshot, 0, 0)->flags & FRAME_TRUNCATED, 0);
    snapshot_free(snapshot);
}

static void *work(void *argument)
{
    middle((uintptr_t)argument);
    return NULL;
}

static void record_in_thread(void *context)
{
    (void)context;
    start(0, 64);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void *)(uintptr_t)BASE))
        _exit(1);
    pthread_join(thread, NULL);
    middle(BASE + 4096);
}

static void threads_have_their_own_stacks_and_numbers(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_in_thread, NULL);
    assert_int_equal(snapshot->entries.count, 2);
    assert_int_not_equal(snapshot->entries.thread[0], snapshot->entries.thread[1]);
    assert_true(is_in(snapshot, frame_of(snapshot, 0, 1), middle));
    unsigned depth = depth_of(snapshot, 0);
    assert_true(depth >= 4);
    assert_int_equal(frame_of(snapshot, 0, depth - 1)->flags & FRAME_TRUNCATED, 0);
    snapshot_free(snapshot);
}

static void *come_and_go(void *argument)
{
    for (uint64_t i = 0; i < 3; i++)
        middle((uintptr_t)argument + i * 4096);
    return NULL;
}

static void record_many_threads(void *context)
{
    (void)context;
    start(0, 32);
    for (uintptr_t i = 0; i < 300; i += 3) {
        pthread_t threads[3];
        for (uintptr_t k = 0; k < 3; k++)
            if (pthread_create(&threads[k], NULL, come_and_go, (void *)(BASE + (i + k) * 65536)))
                _exit(1);
        for (int k = 0; k < 3; k++)
            pthread_join(threads[k], NULL);
    }
}

static void threads_come_and_go(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_many_threads, NULL);
    assert_int_equal(snapshot->entries.count, 900);
    assert_int_equal(snapshot->end.segment_count, 900);
    assert_true(snapshot->frame_count < 20); /* the same frames again and again */
    for (size_t i = 0; i < 900; i++)
        assert_true(is_in(snapshot, frame_of(snapshot, i, 1), middle));
    snapshot_free(snapshot);
}

/* --- libraries ------------------------------------------------------------------------------------------------------ */

static int call_back(void *context)
{
    middle((uintptr_t)context);
    return 1;
}

static uint64_t call_through(const char *name, bool *same_place)
{
    static uint64_t last_place;
    void *library = dlopen(plugin(name), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        _exit(91);
    int (*call)(int (*)(void *), void *, int) = (int (*)(int (*)(void *), void *, int))dlsym(library, "plugin_call");
    struct link_map *map = NULL;
    if (!call || dlinfo(library, RTLD_DI_LINKMAP, &map))
        _exit(92);
    *same_place = map->l_addr == last_place;
    last_place = map->l_addr;
    static uint64_t address = BASE;
    call(call_back, (void *)(uintptr_t)(address += 4096), 3);
    dlclose(library);
    return address;
}

static void record_through_plugins(void *context)
{
    (void)context;
    bool same_place;
    start(0, 64);
    for (int i = 0; i < 6; i++) {
        call_through(i % 2 ? "second" : "first", &same_place);
        recorder_modules_changed();
    }
    struct timespec pause = {0, 30000000};
    for (int i = 0; i < 2; i++) { /* nobody says so: noticed after a while */
        nanosleep(&pause, NULL);
        call_through(i % 2 ? "second" : "first", &same_place);
    }
    if (!same_place) /* the case that is to be tested */
        _exit(77);
}

static void library_at_the_place_of_another_is_not_mistaken_for_it(void **state)
{
    (void)state;
    int status = in_child(record_through_plugins, NULL);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        print_message("the loader put the libraries at different places\n");
    else
        assert_int_equal(status, 0);
    struct snapshot *snapshot = read_ring(only_file());
    assert_int_equal(snapshot->entries.count, 8);
    for (size_t i = 0; i < 8; i++) {
        const char *path = module_of(snapshot, frame_of(snapshot, i, 3));
        assert_non_null(strstr(path, i % 2 ? "libring_second.so" : "libring_first.so"));
    }
    snapshot_free(snapshot);
    each_file(remove_file, NULL);
}

#if defined(__x86_64__)
static void record_through_different_stacks(void *context)
{
    (void)context;
    bool same_place;
    start(0, 64);
    for (int i = 0; i < 6; i++) {
        call_through(i % 2 ? "frameless" : "framed", &same_place);
        recorder_modules_changed();
    }
    if (!same_place)
        _exit(77);
}

static void library_at_the_place_of_another_is_unwound_by_its_own_rules(void **state)
{
    (void)state;
    int status = in_child(record_through_different_stacks, NULL);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        print_message("the loader put the libraries at different places\n");
    else
        assert_int_equal(status, 0);
    struct snapshot *snapshot = read_ring(only_file());
    assert_int_equal(snapshot->entries.count, 6);
    for (size_t i = 0; i < 6; i++) {
        const char *path = module_of(snapshot, frame_of(snapshot, i, 3));
        assert_non_null(strstr(path, i % 2 ? "libring_frameless.so" : "libring_framed.so"));
        assert_non_null(strstr(module_of(snapshot, frame_of(snapshot, i, 4)), "test_ring_stack"));
        assert_int_equal(depth_of(snapshot, i), depth_of(snapshot, 0));
    }
    snapshot_free(snapshot);
    each_file(remove_file, NULL);
}
#endif

static void record_past_blind(void *context)
{
    (void)context;
    bool same_place;
    start(0, 64);
    for (int i = 0; i < 100; i++)
        call_through("blind", &same_place);
    middle(BASE);
}

static void library_without_unwind_tables_ends_the_stack_but_not_the_recording(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_past_blind, NULL);
    assert_int_equal(snapshot->entries.count, 101);
    for (size_t i = 0; i < 100; i++) {
        unsigned depth = depth_of(snapshot, i);
        assert_true(is_in(snapshot, frame_of(snapshot, i, 0), innermost));
        assert_true(is_in(snapshot, frame_of(snapshot, i, 1), middle));
        assert_true(depth >= 3);
        assert_int_equal(frame_of(snapshot, i, depth - 1)->flags & FRAME_TRUNCATED, FRAME_TRUNCATED);
    }
    assert_int_equal(snapshot->end.segment_count, 101);
    snapshot_free(snapshot);
}

/* --- signals -------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void on_tick(int number)
{
    (void)number;
    handled++;
    middle(BASE + (UINT64_C(1) << 40) + (uint64_t)handled * 4096);
}

static void record_with_signals(void *context)
{
    (void)context;
    timer_t timer;
    struct sigevent sigevent = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec every = {{0, 400000}, {0, 400000}};
    start(100000, 32);
    signal(SIGUSR1, on_tick);
    if (timer_create(CLOCK_MONOTONIC, &sigevent, &timer) || timer_settime(timer, 0, &every, NULL))
        _exit(1);
    uint64_t done = 0;
    for (uint64_t i = 0; i < 30000; i++)
        done += middle(BASE + i * 4096) != 0;
    signal(SIGUSR1, SIG_IGN);
    if (done != 30000 || !handled)
        _exit(2);
}

static void events_in_signal_handlers_never_hang_and_are_recorded_or_counted(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_with_signals, NULL);
    uint64_t ours = 0;
    for (size_t i = 0; i < snapshot->entries.count; i++)
        ours += snapshot->entries.address[i] < BASE + (UINT64_C(1) << 40);
    assert_int_equal(ours, 30000);
    assert_true(snapshot->end.segment_count >= 30000);
    snapshot_free(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_begin_at_the_caller_of_the_wrapper),
        cmocka_unit_test(depth_is_kept_and_the_cut_is_marked),
        cmocka_unit_test(threads_have_their_own_stacks_and_numbers),
        cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(library_at_the_place_of_another_is_not_mistaken_for_it),
#if defined(__x86_64__)
        cmocka_unit_test(library_at_the_place_of_another_is_unwound_by_its_own_rules),
#endif
        cmocka_unit_test(library_without_unwind_tables_ends_the_stack_but_not_the_recording),
        cmocka_unit_test(events_in_signal_handlers_never_hang_and_are_recorded_or_counted),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
