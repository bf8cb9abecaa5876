/*
 * kills COUNT SEED STACKS RINGS PROGRESS LOAD COMMAND PROGRAM...: starts the program (which runs LOAD, in the end) COUNT
 * times, ends it by SIGKILL at a random moment, and looks whether the ring file in the folder RINGS has what it must have:
 * by the reader itself, and by one of the commands of COMMAND.  STACKS is what entries must have: "native", "none".  Ends
 * with status 1 at the first that has not, and leaves it there.
 *
 * The moment: from the start on; as soon as a ring file is being made; twice, while calls return.
 */
#include "killed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum moment { MOMENT_START, MOMENT_MAKING, MOMENT_LOAD, MOMENT_LOAD_AGAIN, MOMENTS };

struct run {
    const char *rings, *load, *command;
    char **program;
    const char *progress_path;
    struct progress *progress;
    bool stacks;
    unsigned long number, with_entries;
};

static uint64_t random_state;

static unsigned long draw(unsigned long below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned long)(random_state >> 33) % below;
}

static void wait_us(unsigned long us)
{
    struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    nanosleep(&time, NULL);
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), of_end = strlen(end);
    return length >= of_end && strcmp(name + length - of_end, end) == 0;
}

/* Calls each() with every file of the folder until one says no. */
static bool each_file(const struct run *run, bool (*each)(const struct run *run, const char *path), size_t *count)
{
    DIR *folder = opendir(run->rings);
    bool right = true;
    *count = 0;
    for (struct dirent *entry; folder && right && (entry = readdir(folder));) {
        char path[4600];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", run->rings, entry->d_name);
        ++*count;
        right = !each || each(run, path);
    }
    if (folder)
        closedir(folder);
    return right;
}

static bool remove_one(const struct run *run, const char *path)
{
    (void)run;
    return unlink(path) == 0;
}

static uint64_t returned(const struct progress *progress)
{
    uint64_t sum = 0;
    for (unsigned t = 0; t < PROGRESS_THREADS; t++)
        sum += __atomic_load_n(&progress->threads[t].count, __ATOMIC_ACQUIRE);
    return sum;
}

static void wait_for(const struct run *run, enum moment moment, pid_t child)
{
    size_t files = 0;
    switch (moment) {
    case MOMENT_START:
        wait_us(draw(16000));
        return;
    case MOMENT_MAKING:
        while (!files && each_file(run, NULL, &files) && kill(child, 0) == 0)
            wait_us(20);
        wait_us(draw(3000));
        return;
    default:
        for (int turn = 0; !returned(run->progress) && turn < 300000; turn++)
            wait_us(50);
        wait_us(draw(20000));
    }
}

static pid_t start(const char *const *words)
{
    pid_t child = fork();
    if (child)
        return child;
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    execvp(words[0], (char *const *)words);
    _exit(127);
}

static bool kill_one(const struct run *run, enum moment moment)
{
    size_t files;
    int status = 0;
    if (!each_file(run, remove_one, &files) || truncate(run->progress_path, 0) ||
        truncate(run->progress_path, sizeof(*run->progress))) {
        perror("kills");
        return false;
    }
    pid_t child = start((const char *const *)run->program);
    wait_for(run, moment, child);
    kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) {
        printf("wrong: the program ended before, status %d\n", status);
        return false;
    }
    return true;
}

/* A command reads it: no crash; and, of a whole file, no complaint. */
static bool command_reads(const struct run *run, const char *path, bool whole)
{
    static const char *const names[] = {"info", "summary", "trace", "stats", "convert", "segsum"};
    const char *name = names[run->number % 6];
    bool writes = strcmp(name, "convert") == 0;
    const char *words[] = {run->command, name, path, writes ? "--to" : NULL, "pickle", "-o", "/dev/null", NULL};
    int status = 0;
    pid_t child = start(words);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || (!whole && WEXITSTATUS(status) < 120)))
        return true;
    printf("wrong: cudamem %s %s: status %d\n", name, path, status);
    return false;
}

static bool is_copy(const char *path)
{
    return strstr(path, ".oom") != NULL;
}

static bool check_file(const struct run *run, const char *path)
{
    if (!ends_with(path, ".ring"))
        return command_reads(run, path, false);
    if (is_copy(path))
        return killed_check_copy(path);
    return killed_check(path, run->progress, run->load, run->stacks) && command_reads(run, path, true);
}

static bool count_ring(const struct run *run, const char *path)
{
    (void)run;
    return !ends_with(path, ".ring") || is_copy(path); /* no: the one that counts is there */
}

static bool check_run(struct run *run)
{
    size_t files;
    bool none = each_file(run, count_ring, &files);
    if (none && returned(run->progress)) {
        printf("wrong: calls returned, and there is no ring file\n");
        return false;
    }
    run->with_entries += !none;
    return each_file(run, check_file, &files);
}

int main(int argc, char **argv)
{
    if (argc < 9)
        return 2;
    struct run run = {.rings = argv[4], .progress_path = argv[5], .load = argv[6], .command = argv[7], .program = argv + 8};
    unsigned long count = strtoul(argv[1], NULL, 10);
    run.stacks = strcmp(argv[3], "none") != 0;
    random_state = strtoul(argv[2], NULL, 10);
    int file = open(run.progress_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(*run.progress)))
        return 2;
    run.progress = mmap(NULL, sizeof(*run.progress), PROT_READ, MAP_SHARED, file, 0);
    if (run.progress == MAP_FAILED)
        return 2;
    for (run.number = 0; run.number < count; run.number++) {
        if (kill_one(&run, (enum moment)(run.number % MOMENTS)) && check_run(&run))
            continue;
        printf("kill %lu of %lu, seed %s\n", run.number, count, argv[2]);
        return 1;
    }
    printf("%lu kills, %lu of them left a ring file\n", count, run.with_entries);
    return run.with_entries >= count / 2 ? 0 : 1;
}
