/* A driver that has a function more than our list: what a newer one looks like.  Nothing of it is called. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
EXPORT int cuMemOfTheFuture_v9(void);
EXPORT int cudbgOfADebugger;

int cudbgOfADebugger = 1;

int cuInit(unsigned flags)
{
    return (int)flags;
}

int cuMemOfTheFuture_v9(void)
{
    return 1;
}
