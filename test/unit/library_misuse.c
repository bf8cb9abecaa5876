/* Misuses the public allocator as its argument says; library_debug.sh looks at how it ends. */
#include <cudamem/cudamem.h>
#include <stdio.h>
#include <string.h>

static void *hand_out(void)
{
    void *pointer = NULL;
    return cudamem_alloc(1000, 0, NULL, &pointer, NULL) ? NULL : pointer;
}

int first_free(void *pointer);
int second_free(void *pointer);

int first_free(void *pointer)
{
    return cudamem_free(pointer, NULL);
}

int second_free(void *pointer)
{
    return cudamem_free(pointer, NULL);
}

int main(int argc, char **argv)
{
    int status = 0;
    void *pointer = hand_out();
    if (!pointer || argc < 2)
        return 2;
    if (strcmp(argv[1], "twice") == 0)
        status = first_free(pointer) ? 0 : second_free(pointer);
    else if (strcmp(argv[1], "inside") == 0)
        status = first_free((char *)pointer + 512);
    else
        status = first_free(pointer);
    printf("%d\n", status);
    return 0;
}
