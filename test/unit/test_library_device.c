/* What the devices say, on the simulated driver and a management library with made-up answers. */
#include "library_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void free_memory_is_the_drivers(void **state)
{
    (void)state;
    uint64_t available, total, after;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    CUdeviceptr pointer;
    assert_int_equal(cudamem_mem_get_info(0, &available, &total, &error), CUDAMEM_OK);
    assert_int_equal(total, 4096 * MIB);
    assert_int_equal(world.mem_alloc(&pointer, 64 * MIB), CUDA_SUCCESS);
    assert_int_equal(cudamem_mem_get_info(-1, &after, NULL, &error), CUDAMEM_OK);
    assert_int_equal(available - after, 64 * MIB);
    world.mem_free(pointer);
    assert_int_equal(cudamem_mem_get_info(1, &available, &total, &error), CUDAMEM_OK);
    assert_int_equal(total, 4096 * MIB);
}

static void there_is_no_such_device(void **state)
{
    (void)state;
    uint64_t available = 1, total = 1;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    assert_true(cudamem_mem_get_info(2, &available, &total, &error) < 0);
    assert_int_equal(available, 0);
    assert_int_equal(total, 0);
    assert_string_not_equal(error.message, "");
    assert_true(cudamem_mem_get_info(-2, &available, &total, &error) < 0);
}

static void a_driver_that_fails_is_told(void **state)
{
    (void)state;
    uint64_t available;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    world_fail("cuMemGetInfo_v2", "999");
    assert_int_equal(cudamem_mem_get_info(0, &available, NULL, &error), CUDAMEM_ERROR_DRIVER);
    assert_non_null(strstr(error.message, "CUDA_ERROR_UNKNOWN"));
}

struct seen {
    int count;
    cudamem_gpu_process first;
    char name[64];
};

static int see(void *self, const cudamem_gpu_process *process)
{
    struct seen *seen = self;
    if (!seen->count++) {
        seen->first = *process;
        snprintf(seen->name, sizeof(seen->name), "%s", process->name);
    }
    return seen->count == 70 ? 7 : 0;
}

static void the_visitor_sees_each_process_that_computes(void **state)
{
    (void)state;
    struct seen seen = {.count = 0};
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(cudamem_visit_gpu_processes(0, see, &seen, NULL), 7); /* what it answered */
    assert_int_equal(seen.count, 70);
    assert_int_equal(seen.first.pid, 4000000000);
    assert_int_equal(seen.first.used, MIB);
    assert_true(seen.first.has_used);
    assert_string_equal(seen.name, "program-0");
}

static void the_text_is_pytorchs(void **state)
{
    (void)state;
    char *text;
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(cudamem_list_gpu_processes(0, &text, NULL), CUDAMEM_OK);
    assert_int_equal(strncmp(text, "GPU:0\nprocess 4000000000 uses        1.000 MB GPU memory\n", 57), 0);
    assert_int_not_equal(text[strlen(text) - 1], '\n');
    cudamem_text_free(text);
    assert_int_equal(cudamem_list_gpu_processes(1, &text, NULL), CUDAMEM_OK);
    assert_int_equal(strncmp(text, "GPU:1\n", 6), 0);
    cudamem_text_free(text);
}

static void ordinals_are_those_that_the_environment_leaves(void **state)
{
    (void)state;
    char *text;
    cudamem_error error = CUDAMEM_ERROR_INIT;
    setenv("CUDA_VISIBLE_DEVICES", "1, 0", 1);
    assert_int_equal(cudamem_list_gpu_processes(0, &text, NULL), CUDAMEM_OK);
    assert_int_equal(strncmp(text, "GPU:1\n", 6), 0);
    cudamem_text_free(text);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    assert_int_equal(cudamem_list_gpu_processes(1, &text, &error), CUDAMEM_ERROR_NOT_FOUND);
    setenv("CUDA_VISIBLE_DEVICES", "nonsense,0", 1);
    assert_int_equal(cudamem_list_gpu_processes(1, &text, &error), CUDAMEM_ERROR_NOT_FOUND);
    assert_null(text);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void without_a_driver_the_text_says_so(void **state)
{
    (void)state;
    char *text;
    struct seen seen = {.count = 0};
    setenv("FAKE_NVML_INIT", "9", 1);
    assert_int_equal(cudamem_list_gpu_processes(0, &text, NULL), CUDAMEM_OK);
    assert_string_equal(text, "cuda driver can't be loaded, is cuda enabled?");
    cudamem_text_free(text);
    assert_int_equal(cudamem_visit_gpu_processes(0, see, &seen, NULL), CUDAMEM_ERROR_NOT_FOUND);
    unsetenv("FAKE_NVML_INIT");
}

int main(void)
{
    world_open("2:4GiB");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_memory_is_the_drivers),
        cmocka_unit_test(there_is_no_such_device),
        cmocka_unit_test(a_driver_that_fails_is_told),
        cmocka_unit_test(the_visitor_sees_each_process_that_computes),
        cmocka_unit_test(the_text_is_pytorchs),
        cmocka_unit_test(ordinals_are_those_that_the_environment_leaves),
        cmocka_unit_test(without_a_driver_the_text_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
