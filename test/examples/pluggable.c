/* An allocator of your own in place of cudamem's: this file is the library and the program that loads it.
 *
 *     cc -shared -fPIC -DPLUGIN -o pluggable.so pluggable.c
 *     cc pluggable.c $(pkg-config --cflags --libs cudamem)
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PLUGIN

void *my_alloc(ptrdiff_t size, int device, void *stream);
void my_free(void *pointer, ptrdiff_t size, int device, void *stream);

void *my_alloc(ptrdiff_t size, int device, void *stream)
{
    (void)stream;
    printf("my_alloc: %td bytes on device %d\n", size, device);
    return malloc((size_t)size);
}

void my_free(void *pointer, ptrdiff_t size, int device, void *stream)
{
    (void)stream;
    printf("my_free: %td bytes on device %d\n", size, device);
    free(pointer);
}

#else

#include <cudamem/cudamem.h>

int main(int argc, char **argv)
{
    cudamem_error error = CUDAMEM_ERROR_INIT;
    cudamem_pluggable *allocator;
    void *pointer;

    if (cudamem_pluggable_load(argc > 1 ? argv[1] : "./pluggable.so", "my_alloc", "my_free", &allocator, &error) ||
        cudamem_change_allocator(allocator, &error) || cudamem_alloc(1000, 0, NULL, &pointer, &error) ||
        cudamem_free(pointer, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("backend: %s\n", cudamem_allocator_backend());
    return 0;
}

#endif
