/*
 * What a paused recorder costs a program: `pause_bench PAIRS` takes and gives device memory and prints the median of
 * seven rounds as ns_a_pair=N; with a second word `paused` it first has some of it recorded and is then paused, by
 * $CUDAMEM ctl, for the rounds that count; with `recorded` it goes on.  pause_bench.sh compares.
 */
#include "../programs/driver.h"

#include <time.h>

#define ROUNDS 7

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double a_round(unsigned long pairs)
{
    double start = now();
    for (unsigned long i = 0; i < pairs; i++)
        give(take(4096));
    return (now() - start) / (double)pairs;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void pause_recorder(void)
{
    char line[600];
    const char *command = getenv("CUDAMEM");
    snprintf(line, sizeof(line), "LD_PRELOAD= '%s' ctl %d pause 2>/dev/null", command ? command : "cudamem", (int)getpid());
    if (system(line))
        die("pausing", 0);
}

int main(int argc, char **argv)
{
    unsigned long pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
    double rounds[ROUNDS];
    driver_ready();
    a_round(pairs / 10 + 1);
    if (argc > 2 && strcmp(argv[2], "paused") == 0)
        pause_recorder();
    for (int i = 0; i < ROUNDS; i++)
        rounds[i] = a_round(pairs);
    qsort(rounds, ROUNDS, sizeof(rounds[0]), compare);
    printf("ns_a_pair=%.1f\n", rounds[ROUNDS / 2]);
    return 0;
}
