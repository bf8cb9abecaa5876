/* Does what its standard input says, one line at a time, and answers each with one. */
#include <signal.h>
#include <sys/wait.h>

#include "driver.h"

#define PIECES 32

static struct {
    char name[32];
    CUdeviceptr address;
} pieces[PIECES];
static volatile sig_atomic_t seen;
static struct sigaction before;

static void count_it(int number)
{
    (void)number;
    seen++;
}

/* As libraries do that were there first, and hand on what they found. */
static void hand_on(int number, siginfo_t *info, void *context)
{
    seen++;
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
}

static int piece_of(const char *name)
{
    int i = 0;
    while (i < PIECES && strcmp(pieces[i].name, name) != 0)
        i++;
    return i;
}

static NOINLINE void steered_alloc(const char *name, size_t bytes)
{
    int i = piece_of("");
    if (i == PIECES)
        die("room for names", 0);
    snprintf(pieces[i].name, sizeof(pieces[i].name), "%s", name);
    pieces[i].address = take(bytes);
}

static NOINLINE void steered_free(const char *name)
{
    int i = piece_of(name);
    if (i == PIECES)
        die("finding the piece", 0);
    give(pieces[i].address);
    pieces[i].name[0] = 0;
}

static NOINLINE int steered_refused(size_t bytes)
{
    CUdeviceptr address = 0;
    return (int)cu.cuMemAlloc(&address, bytes);
}

static void steered_churn(size_t count, size_t bytes)
{
    while (count--)
        give(take(bytes));
}

static void install(bool hands_on)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    if (hands_on) {
        action.sa_sigaction = hand_on;
        action.sa_flags = SA_SIGINFO;
    } else {
        action.sa_handler = count_it;
    }
    sigaction(SIGUSR2, &action, &before);
}

/* A handler for the next signal alone, or none at all. */
static void install_once(void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGUSR2, &action, NULL);
}

/* What the program is told that it set. */
static void say_action(void)
{
    static const struct {
        const char *name;
        void (*handler)(int);
    } known[] = {{"default", SIG_DFL}, {"ignore", SIG_IGN}, {"count_it", count_it}};
    struct sigaction action;
    const char *name = "another";
    sigaction(SIGUSR2, NULL, &action);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (action.sa_handler == known[i].handler)
            name = known[i].name;
    if (action.sa_sigaction == hand_on)
        name = "hand_on";
    printf("%s flags %x masks itself %d\n", name, (unsigned)action.sa_flags, sigismember(&action.sa_mask, SIGUSR2));
}

/* One that comes while its handler runs. */
static void nest_it(int number)
{
    static volatile sig_atomic_t nested;
    seen++;
    if (++nested < 3)
        raise(number);
}

static void install_nesting(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = nest_it;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGUSR2, &action, NULL);
}

/* A child in our memory, which has actions of its own. */
static void steered_vfork(void)
{
    pid_t child = vfork();
    if (child == 0) {
        struct sigaction action;
        memset(&action, 0, sizeof(action));
        action.sa_handler = SIG_IGN;
        sigaction(SIGUSR2, &action, NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* A child that shares nothing of the lines. */
static void steered_fork(size_t bytes)
{
    int ready[2];
    char c = 0;
    CHECK(pipe(ready));
    pid_t child = fork();
    if (child == 0) {
        close(ready[0]);
        if (bytes)
            take(bytes);
        if (write(ready[1], &c, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    if (read(ready[0], &c, 1) != 1)
        die("the child", 0);
    close(ready[0]);
    close(ready[1]);
    printf("child %d\n", (int)child);
}

static bool obey(char *line, char **argv)
{
    char word[32] = "", name[32] = "";
    size_t number = 0;
    if (sscanf(line, "alloc %31s %zu", name, &number) == 2)
        steered_alloc(name, number);
    else if (sscanf(line, "free %31s", name) == 1)
        steered_free(name);
    else if (sscanf(line, "refused %zu", &number) == 1)
        return printf("result %d\n", steered_refused(number)) > 0;
    else if (sscanf(line, "churn %zu", &number) == 1)
        steered_churn(number, 4096);
    else if (sscanf(line, "fork %zu", &number) == 1)
        return steered_fork(number), true;
    else if (sscanf(line, "raise %zu", &number) == 1)
        raise((int)number);
    else if (sscanf(line, "%31s", word) == 1 && strcmp(word, "handler") == 0)
        install(false);
    else if (strcmp(word, "chain") == 0)
        install(true);
    else if (strcmp(word, "once") == 0)
        install_once(count_it);
    else if (strcmp(word, "default") == 0)
        install_once(SIG_DFL);
    else if (strcmp(word, "nest") == 0)
        install_nesting();
    else if (strcmp(word, "plain") == 0)
        signal(SIGUSR2, count_it);
    else if (strcmp(word, "ignore") == 0)
        signal(SIGUSR2, SIG_IGN);
    else if (strcmp(word, "vfork") == 0)
        steered_vfork();
    else if (strcmp(word, "action") == 0)
        return say_action(), true;
    else if (strcmp(word, "seen") == 0)
        return printf("seen %d\n", (int)seen) > 0;
    else if (strcmp(word, "again") == 0)
        execv("/proc/self/exe", argv);
    else
        return false;
    puts("ok");
    return true;
}

int main(int argc, char **argv)
{
    char line[128];
    (void)argc;
    setvbuf(stdin, NULL, _IONBF, 0); /* so that another program finds the rest */
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    driver_ready();
    while (fgets(line, sizeof(line), stdin) && obey(line, argv))
        fflush(stdout);
    report("steered");
    return 0;
}
