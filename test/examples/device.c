/* What the device has free, and who else is on it.
 *
 *     cc device.c $(pkg-config --cflags --libs cudamem)
 */
#include <cudamem/cudamem.h>

#include <stdio.h>

int main(void)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    uint64_t available, total;
    char *processes;

    if (cudamem_mem_get_info(0, &available, &total, &error) || cudamem_list_gpu_processes(0, &processes, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%llu of %llu bytes are free\n%s\n", (unsigned long long)available, (unsigned long long)total, processes);
    cudamem_text_free(processes);
    return 0;
}
