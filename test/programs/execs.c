/* One allocation, then another program in the same process. */
#include "driver.h"

int main(int argc, char **argv)
{
    if (argc < 2)
        return 97;
    driver_ready();
    take(2 * MIB);
    report("execs");
    execvp(argv[1], argv + 1);
    return 127;
}
