/* Stacks walked by what was learned of them are the stacks that libunwind finds, whatever the functions are like. */
#include "record/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#if defined(__x86_64__)

#define MOST 128
#define NOINLINE __attribute__((noinline))

static struct walk_memory *memory;
static int (*backtrace_of)(void **, int);
static unsigned long walked, asked;
static unsigned state;

static unsigned roll(unsigned most)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % most;
}

/* The memory as the recorder uses it, and every walk held against libunwind. */
static __attribute__((noinline)) void look(void)
{
    uintptr_t *frame = __builtin_frame_address(0);
    const struct walk_state from = {frame[1], (uintptr_t)(frame + 2), frame[0]};
    void *frames[MOST], *truth[MOST];
    size_t count;
    enum walk_end end = walk_frames(memory, &from, frames, MOST, &count);
    int found = backtrace_of(truth, MOST);
    assert_true(found > 2);
    asked++;
    if (end == WALK_DONE) {
        assert_int_equal(count, found - 1);
        assert_memory_equal(frames, truth + 1, count * sizeof(*frames));
        walked++;
    } else if (end == WALK_UNKNOWN) {
        uint64_t hash = 0;
        for (int i = 0; i < found; i++)
            hash = fold(hash ^ (uintptr_t)truth[i], (uint64_t)i);
        walk_learn(memory, &from, truth + 1, (size_t)found - 1, hash);
    }
    __asm__ volatile("" ::: "memory");
}

static void go_on(unsigned depth);

static NOINLINE void plain(unsigned depth)
{
    go_on(depth);
    __asm__ volatile("" ::: "memory");
}

/* The compiler must think that this memory is used. */
static void use(void *room)
{
    __asm__ volatile("" ::"r"(room) : "memory");
}

static NOINLINE void variable(unsigned depth)
{
    use(alloca(16 + 16 * roll(9)));
    go_on(depth);
    use(NULL);
}

static NOINLINE void realigned(unsigned depth)
{
    _Alignas(64) char room[64];
    use(room);
    go_on(depth);
    use(room);
}

static NOINLINE void realigned_and_variable(unsigned depth)
{
    _Alignas(128) char room[128];
    use(room);
    use(alloca(16 + 16 * roll(5)));
    go_on(depth);
    use(room);
}

static NOINLINE void big(unsigned depth)
{
    char room[9000];
    use(room);
    go_on(depth);
    use(room);
}

static NOINLINE void many(unsigned depth, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g)
{
    unsigned sum[] = {a, b, c, d, e, f, g};
    use(sum);
    go_on(depth);
    use(sum);
}

static int compare(const void *a, const void *b)
{
    if (roll(4) == 0)
        look();
    return *(const int *)a - *(const int *)b;
}

static NOINLINE void through_a_library(unsigned depth)
{
    int numbers[4] = {(int)depth, 3, 1, 2};
    qsort(numbers, 4, sizeof(int), compare);
    __asm__ volatile("" ::: "memory");
}

static void go_on(unsigned depth)
{
    if (!depth) {
        look();
        look();
        return;
    }
    for (unsigned i = 0; i <= roll(2); i++) {
        switch (roll(7)) {
        case 0: plain(depth - 1); break;
        case 1: variable(depth - 1); break;
        case 2: realigned(depth - 1); break;
        case 3: big(depth - 1); break;
        case 4: many(depth - 1, i, 2, 3, 4, 5, 6, 7); break;
        case 5: realigned_and_variable(depth - 1); break;
        default: through_a_library(depth - 1); break;
        }
    }
}

static void begin(void)
{
    memory = calloc(1, sizeof(*memory));
    assert_non_null(memory);
    walked = asked = 0;
}

static void a_walk_finds_what_libunwind_finds(void **context)
{
    (void)context;
    begin();
    for (unsigned round = 0; round < 400; round++) {
        state = round % 40; /* the same ways several times */
        go_on(2 + state % 9);
    }
    assert_false(memory->distrusted);
    assert_true(walked > asked / 2);
    free(memory);
}

static NOINLINE void repeat(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        look();
}

static void a_stack_that_stays_is_walked_from_the_third_time_on(void **context)
{
    (void)context;
    begin();
    repeat(1000);
    assert_int_equal(walked, 998);
    free(memory);
}

static void on_signal(int number)
{
    (void)number;
    repeat(10);
}

static void a_signal_frame_is_for_libunwind(void **context)
{
    (void)context;
    begin();
    struct sigaction action = {.sa_handler = on_signal}, before;
    assert_int_equal(sigaction(SIGUSR2, &action, &before), 0);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR2);
    sigaction(SIGUSR2, &before, NULL);
    assert_int_equal(asked, 50);
    assert_int_equal(walked, 0);
    free(memory);
}

static ucontext_t here, there;

static void of_its_own_stack(void)
{
    for (int i = 0; i < 20; i++) {
        repeat(3);
        swapcontext(&there, &here);
    }
}

static void stacks_of_coroutines_are_kept_apart(void **context)
{
    (void)context;
    begin();
    static char stack[2][256 * 1024];
    for (int round = 0; round < 4; round++) {
        getcontext(&there);
        there.uc_stack.ss_sp = stack[round % 2];
        there.uc_stack.ss_size = sizeof(stack[0]);
        there.uc_link = &here;
        makecontext(&there, of_its_own_stack, 0);
        for (int i = 0; i < 20; i++) {
            swapcontext(&here, &there);
            repeat(2);
        }
    }
    assert_false(memory->distrusted);
    assert_true(walked > asked / 2);
    free(memory);
}

static void what_was_learned_can_be_forgotten(void **context)
{
    (void)context;
    begin();
    repeat(10);
    unsigned long before = walked;
    walk_forget(memory);
    repeat(1);
    assert_int_equal(walked, before);
    free(memory);
}

int main(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL), *function = library ? dlsym(library, "unw_backtrace") : NULL;
    if (!function)
        return 77;
    memcpy(&backtrace_of, &function, sizeof(backtrace_of));
    walk_start(library);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_finds_what_libunwind_finds),
        cmocka_unit_test(a_stack_that_stays_is_walked_from_the_third_time_on),
        cmocka_unit_test(a_signal_frame_is_for_libunwind),
        cmocka_unit_test(stacks_of_coroutines_are_kept_apart),
        cmocka_unit_test(what_was_learned_can_be_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77;
}

#endif
