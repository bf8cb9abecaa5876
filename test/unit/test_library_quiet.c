/* Recording asks for no memory once its ring has grown and the stacks are known: counted at malloc itself. */
#include "library_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);

#define SEEN_BY_ALL __attribute__((visibility("default")))

static atomic_ulong requests;

SEEN_BY_ALL void *malloc(size_t size)
{
    atomic_fetch_add(&requests, 1);
    return __libc_malloc(size);
}

SEEN_BY_ALL void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&requests, 1);
    return __libc_calloc(count, size);
}

SEEN_BY_ALL void *realloc(void *pointer, size_t size)
{
    atomic_fetch_add(&requests, 1);
    return __libc_realloc(pointer, size);
}

static void pairs(int count)
{
    void *pointer;
    for (int i = 0; i < count; i++) {
        assert_int_equal(cudamem_alloc(600 + (size_t)(i % 16) * 512, 0, NULL, &pointer, NULL), CUDAMEM_OK);
        assert_int_equal(cudamem_free(pointer, NULL), CUDAMEM_OK);
    }
}

static void a_full_ring_asks_for_nothing(void **state)
{
    (void)state;
    const cudamem_history_options options = {.struct_size = sizeof(options), .max_entries = 10000};
    assert_int_equal(cudamem_record_memory_history(&options, NULL), CUDAMEM_OK);
    unsigned long before = requests;
    pairs(4000); /* 12000 entries */
    assert_true(requests > before); /* the counter counts */
    before = requests;
    pairs(4000);
    assert_int_equal(requests - before, 0);
}

static void pieces_ask_for_nothing_either(void **state)
{
    (void)state;
    void *pointer;
    unsigned long before = 0;
    assert_int_equal(cudamem_alloc(4 * MIB, 0, NULL, &pointer, NULL), CUDAMEM_OK);
    for (int round = 0; round < 2; round++) {
        before = requests;
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(cudamem_suballoc((char *)pointer + i * 4096, 4096, 0, NULL, NULL), CUDAMEM_OK);
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(cudamem_subfree((char *)pointer + i * 4096, NULL), CUDAMEM_OK);
    }
    assert_int_equal(requests - before, 0);
    assert_int_equal(cudamem_free(pointer, NULL), CUDAMEM_OK);
}

int main(void)
{
    world_open("1:4GiB");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_ring_asks_for_nothing),
        cmocka_unit_test(pieces_ask_for_nothing_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
