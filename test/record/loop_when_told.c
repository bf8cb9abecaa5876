/* loop_when_told FIFO: one allocation; when the fifo is written to, 1000 more that are freed at once. */
#include "../programs/driver.h"

int main(int argc, char **argv)
{
    driver_ready();
    take(MIB);
    FILE *told = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!told || fgetc(told) == EOF)
        return 97;
    for (int i = 0; i < 1000; i++)
        give(take(1024));
    report("loop_when_told");
    return 0;
}
