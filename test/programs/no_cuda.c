/* Touches no CUDA library. */
#include <stdio.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("%s%s", i > 1 ? " " : "", argv[i]);
    if (argc > 1)
        putchar('\n');
    return argc - 1;
}
