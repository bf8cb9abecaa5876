/*
 * nvtx WHAT: ranges as NVTX's header makes them: a table of pointers that a tool fills through NVTX_INJECTION64_PATH.
 *
 *   nested      ranges in ranges with an allocation in each, one opened before the driver is used; marks; wide names;
 *               registered ones; a domain
 *   threads     a range a thread, and one of the whole process, with an allocation in each
 *   odd         an allocation (not with "early"), then pops of nothing, empty and long names, ranges that never end
 *   many N      an allocation, then N ranges with names of their own and an allocation in the last
 *   fork        a range that a child inherits; each allocates within it
 */
#include "driver.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <wchar.h>

/* --- the header's part -------------------------------------------------------------------------------------------- */

typedef void (*pointer)(void);
struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *a;
        const wchar_t *w;
        const void *registered;
    } message;
};

enum { CORE = 16, DOMAINS = 16 };
static pointer core[CORE], domains[DOMAINS];
static pointer *core_table[CORE + 1], *domains_table[DOMAINS + 1];

static int get_module(int module, pointer ***table, unsigned *size)
{
    pointer **tables[] = {[1] = core_table, [5] = domains_table};
    if (module != 1 && module != 5)
        return 0;
    for (int i = 1; i < 16; i++) {
        core_table[i] = &core[i];
        domains_table[i] = &domains[i];
    }
    *table = tables[module];
    if (size)
        *size = 16;
    return 1;
}

static const struct {
    size_t size;
    int (*get_module)(int, pointer ***, unsigned *);
} callbacks = {sizeof callbacks, get_module};

static const void *get_table(uint32_t table)
{
    return table == 1 ? &callbacks : NULL;
}

static int nvtx_begin(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    void *found = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
    int (*initialize)(const void *(*)(uint32_t)) = NULL;
    memcpy(&initialize, &found, sizeof initialize);
    return initialize ? initialize(get_table) : 0;
}

#define CALL(type, table, number, absent, parameters, arguments) \
    (table[number] ? ((type(*) parameters)table[number]) arguments : (absent))

static int push(const char *name)
{
    return CALL(int, core, 9, -2, (const char *), (name));
}

static int push_wide(const wchar_t *name)
{
    return CALL(int, core, 10, -2, (const wchar_t *), (name));
}

static int pop(void)
{
    return CALL(int, core, 11, -2, (void), ());
}

static void mark(const char *name)
{
    if (core[2])
        ((void (*)(const char *))core[2])(name);
}

static uint64_t start(const char *name)
{
    return CALL(uint64_t, core, 5, 0, (const char *), (name));
}

static void end(uint64_t range)
{
    if (core[7])
        ((void (*)(uint64_t))core[7])(range);
}

static const void *domain(const char *name)
{
    return CALL(const void *, domains, 12, NULL, (const char *), (name));
}

static const void *registered(const void *of, const char *name)
{
    return CALL(const void *, domains, 10, NULL, (const void *, const char *), (of, name));
}

static int domain_push(const void *of, const struct attributes *attributes)
{
    return CALL(int, domains, 4, -2, (const void *, const struct attributes *), (of, attributes));
}

static int domain_pop(const void *of)
{
    return CALL(int, domains, 5, -2, (const void *), (of));
}

/* --- the work ----------------------------------------------------------------------------------------------------- */

static void nested(void)
{
    printf("depth %d\n", push("before"));
    driver_ready();
    take(1 * MIB);
    push_wide(L"na\u00efve \U0001f600");
    take(2 * MIB);
    const void *own = domain("own");
    struct attributes attributes = {.version = 3, .size = sizeof attributes, .message_type = 3};
    attributes.message.registered = registered(own, "registered");
    domain_push(own, &attributes);
    take(3 * MIB);
    pop(); /* the wide one: another domain's stays open */
    take(4 * MIB);
    domain_pop(own);
    mark("moment");
    take(5 * MIB);
    printf("depth %d\n", pop());
    take(6 * MIB);
}

static pthread_barrier_t barrier;

static void *thread(void *context)
{
    unsigned number = *(unsigned *)context;
    char name[32];
    CHECK(cu.cuInit(0));
    driver_use(0);
    snprintf(name, sizeof name, "thread %u", number);
    push(name);
    pthread_barrier_wait(&barrier);
    take((number + 1) * MIB);
    pthread_barrier_wait(&barrier);
    pop();
    return NULL;
}

static void threads(void)
{
    pthread_t started[4];
    unsigned numbers[4];
    driver_ready();
    uint64_t range = start("process");
    pthread_barrier_init(&barrier, NULL, 4);
    for (unsigned i = 0; i < 4; i++) {
        numbers[i] = i;
        pthread_create(&started[i], NULL, thread, &numbers[i]);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(started[i], NULL);
    end(range);
    take(16 * MIB);
    done.allocations = 5;
}

static void odd(int early)
{
    static char name[100000];
    memset(name, 'x', sizeof name - 1);
    driver_ready();
    if (!early)
        take(4 * MIB);
    for (int i = 0; i < 5; i++)
        pop();
    domain_pop(NULL);
    end(12345);
    push("");
    pop();
    push(NULL);
    pop();
    push(name);
    for (int i = 0; i < 40; i++) {
        char each[32];
        snprintf(each, sizeof each, "deep %d", i);
        push(each);
    }
    take(MIB);
    for (int i = 0; i < 40; i++)
        pop();
    take(2 * MIB);
    struct attributes small = {.version = 1, .size = 8};
    domain_push(domain("small"), &small);
    domain_push(domain("small"), NULL);
    take(3 * MIB);
}

static void many(unsigned long count)
{
    driver_ready();
    take(2 * MIB);
    for (unsigned long i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "step %lu", i);
        push(name);
        if (i + 1 == count)
            take(MIB);
        pop();
    }
}

static void forked(void)
{
    push("inherited");
    uint64_t range = start("everywhere");
    fflush(stdout);
    pid_t child = fork();
    driver_ready();
    take(child ? MIB : 2 * MIB);
    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
    end(range);
    pop();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "nested";
    nvtx_begin();
    if (strcmp(what, "nested") == 0)
        nested();
    else if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "odd") == 0)
        odd(argc > 2);
    else if (strcmp(what, "many") == 0)
        many(argc > 2 ? strtoul(argv[2], NULL, 10) : 200000);
    else if (strcmp(what, "fork") == 0)
        forked();
    report("nvtx");
    return 0;
}
