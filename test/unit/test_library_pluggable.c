/* An allocator out of a library in place of ours, by PyTorch's words about CUDAPluggableAllocator.  Argument: that library.
 * The current one can be changed but once, so the tests are steps of one story. */
#include "library_world.h"
#include "pluggable_plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *library;
static cudamem_pluggable *plugin;
static struct plugin_told *told;

static struct {
    int devices, resets, recorded;
    double fraction;
} hooked;

static void on_init(int devices)
{
    hooked.devices = devices;
}

static void on_reset(void)
{
    hooked.resets++;
}

static void on_fraction(double fraction, int device)
{
    hooked.fraction = fraction + device;
}

static void *on_base(void *pointer, size_t *size)
{
    *size = 4242;
    return (char *)pointer - 16;
}

static void on_record(void *pointer, void *stream)
{
    hooked.recorded += pointer && stream;
}

static void what_cannot_be_loaded_is_told(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    cudamem_pluggable *allocator = (void *)&error;
    assert_int_equal(cudamem_pluggable_load("/no/such.so", "a", "b", &allocator, &error), CUDAMEM_ERROR_NOT_FOUND);
    assert_null(allocator);
    assert_non_null(strstr(error.message, "/no/such.so"));
    assert_int_equal(cudamem_pluggable_load(library, "plugin_alloc", "plugin_lost", &allocator, &error),
                     CUDAMEM_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "plugin_lost"));
    assert_int_equal(cudamem_pluggable_load(library, NULL, "plugin_free", &allocator, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_pluggable_load(library, "plugin_alloc", "plugin_free", NULL, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_change_allocator(NULL, &error), CUDAMEM_ERROR_USAGE);
    assert_int_equal(cudamem_pluggable_close(NULL, NULL), CUDAMEM_OK);
}

static void one_that_never_was_current_can_be_closed(void **state)
{
    (void)state;
    cudamem_pluggable *allocator;
    assert_int_equal(cudamem_pluggable_load(library, "plugin_alloc", "plugin_free", &allocator, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_pluggable_close(allocator, NULL), CUDAMEM_OK);
    assert_null(cudamem_current_allocator());
    assert_string_equal(cudamem_allocator_backend(), "native");
}

static void the_loaded_functions_can_be_had_back(void **state)
{
    (void)state;
    cudamem_pluggable_alloc take;
    cudamem_pluggable_free give;
    assert_int_equal(cudamem_pluggable_load(library, "plugin_alloc", "plugin_free", &plugin, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_pluggable_functions(plugin, &take, &give, NULL), CUDAMEM_OK);
    void *pointer = take(64, 1, NULL);
    assert_int_equal(told->allocs, 1);
    assert_int_equal(told->device, 1);
    give(pointer, 64, 1, NULL);
    assert_int_equal(told->frees, 1);
    assert_int_equal(cudamem_pluggable_functions(plugin, NULL, NULL, NULL), CUDAMEM_OK);
}

static void it_becomes_the_current_one_before_the_first_use(void **state)
{
    (void)state;
    const cudamem_pluggable_hooks hooks = {sizeof(hooks), on_init, on_reset, on_fraction, on_base, on_record};
    assert_int_equal(cudamem_pluggable_set_hooks(plugin, &hooks, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_change_allocator(plugin, NULL), CUDAMEM_OK);
    assert_ptr_equal(cudamem_current_allocator(), plugin);
    assert_string_equal(cudamem_allocator_backend(), "pluggable");
}

static void requests_and_frees_reach_it_as_they_were_made(void **state)
{
    (void)state;
    void *pointer;
    CUstream stream = world_stream();
    assert_int_equal(cudamem_alloc(1001, 1, stream, &pointer, NULL), CUDAMEM_OK);
    assert_int_equal(hooked.devices, 2);
    assert_int_equal(told->allocs, 2);
    assert_int_equal(told->size, 1001); /* nothing is rounded */
    assert_int_equal(told->device, 1);
    assert_ptr_equal(told->stream, stream);
    memset(told, 0, sizeof(*told));
    assert_int_equal(cudamem_free(pointer, NULL), CUDAMEM_OK);
    assert_int_equal(told->frees, 1);
    assert_ptr_equal(told->pointer, pointer);
    assert_int_equal(told->size, 1001);
    assert_int_equal(told->device, 1);
    assert_ptr_equal(told->stream, stream);
    world.stream_destroy(stream);
}

static void what_it_did_not_hand_out_is_refused(void **state)
{
    (void)state;
    void *pointer;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    memset(told, 0, sizeof(*told));
    assert_int_equal(cudamem_free(&error, &error), CUDAMEM_ERROR_INVALID);
    assert_int_equal(cudamem_alloc(10, 0, NULL, &pointer, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_free(pointer, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_free(pointer, &error), CUDAMEM_ERROR_INVALID);
    assert_int_equal(told->frees, 1);
}

static void its_null_is_out_of_memory(void **state)
{
    (void)state;
    void *pointer = &told;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    assert_int_equal(cudamem_alloc(PLUGIN_TOO_MUCH, 0, NULL, &pointer, &error), CUDAMEM_ERROR_OUT_OF_MEMORY);
    assert_null(pointer);
    assert_int_equal(cudamem_alloc(SIZE_MAX, 0, NULL, &pointer, &error), CUDAMEM_ERROR_OUT_OF_MEMORY);
}

static void hooks_hear_what_they_are_for(void **state)
{
    (void)state;
    void *pointer, *base;
    size_t size;
    assert_int_equal(cudamem_empty_cache(NULL), CUDAMEM_OK);
    assert_int_equal(hooked.resets, 1);
    assert_int_equal(cudamem_set_memory_fraction(0.5, 1, NULL), CUDAMEM_OK);
    assert_true(hooked.fraction == 1.5);
    assert_int_equal(cudamem_alloc(100, 0, NULL, &pointer, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_base(pointer, &base, &size, NULL), CUDAMEM_OK);
    assert_ptr_equal(base, (char *)pointer - 16);
    assert_int_equal(size, 4242);
    assert_int_equal(cudamem_record_stream(pointer, &size, NULL), CUDAMEM_OK);
    assert_int_equal(hooked.recorded, 1);
    assert_int_equal(cudamem_free(pointer, NULL), CUDAMEM_OK);
}

static void what_it_cannot_do_is_refused_by_name(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    cudamem_snapshot *snapshot;
    assert_int_equal(cudamem_record_memory_history(NULL, &error), CUDAMEM_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "history"));
    assert_int_equal(cudamem_memory_snapshot(NULL, &snapshot, &error), CUDAMEM_ERROR_UNSUPPORTED);
    assert_null(snapshot);
    cudamem_memory_stats stats = {.struct_size = sizeof(stats)};
    assert_int_equal(cudamem_get_memory_stats(0, &stats, &error), CUDAMEM_ERROR_UNSUPPORTED);
}

static void it_stays(void **state)
{
    (void)state;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    cudamem_pluggable *other;
    const cudamem_pluggable_hooks none = {.struct_size = sizeof(none)};
    assert_int_equal(cudamem_pluggable_load(library, "plugin_alloc", "plugin_free", &other, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_change_allocator(other, &error), CUDAMEM_ERROR_STATE);
    assert_ptr_equal(cudamem_current_allocator(), plugin);
    assert_int_equal(cudamem_pluggable_close(other, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_pluggable_close(plugin, &error), CUDAMEM_ERROR_STATE);
    assert_int_equal(cudamem_pluggable_set_hooks(plugin, &none, &error), CUDAMEM_ERROR_STATE);
}

/* In a process of its own: ours was used first. */
static void ours_in_use_is_not_replaced(void **state)
{
    (void)state;
    void *pointer;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    assert_int_equal(cudamem_pluggable_load(library, "plugin_alloc", "plugin_free", &plugin, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_alloc(100, 0, NULL, &pointer, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_change_allocator(plugin, &error), CUDAMEM_ERROR_STATE);
    assert_non_null(strstr(error.message, "in use"));
    assert_null(cudamem_current_allocator());
    assert_int_equal(cudamem_free(pointer, NULL), CUDAMEM_OK);
    assert_int_equal(cudamem_pluggable_close(plugin, NULL), CUDAMEM_OK);
}

int main(int argc, char **argv)
{
    void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!handle)
        return 1;
    library = argv[1];
    told = dlsym(handle, "plugin_told");
    world_open("2:4GiB");
    const struct CMUnitTest late[] = {cmocka_unit_test(ours_in_use_is_not_replaced)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_loaded_is_told),
        cmocka_unit_test(one_that_never_was_current_can_be_closed),
        cmocka_unit_test(the_loaded_functions_can_be_had_back),
        cmocka_unit_test(it_becomes_the_current_one_before_the_first_use),
        cmocka_unit_test(requests_and_frees_reach_it_as_they_were_made),
        cmocka_unit_test(what_it_did_not_hand_out_is_refused),
        cmocka_unit_test(its_null_is_out_of_memory),
        cmocka_unit_test(hooks_hear_what_they_are_for),
        cmocka_unit_test(what_it_cannot_do_is_refused_by_name),
        cmocka_unit_test(it_stays),
    };
    if (argc > 2)
        return cmocka_run_group_tests(late, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
