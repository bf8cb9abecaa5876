/* Programs that use CUDA and escape the recorder.  Uses base and the C library. */
#include "tools/record_escape.h"

#include "tools/command.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ESCAPE_FIRST 25       /* milliseconds before the first look; each pause is twice the one before */
#define ESCAPE_LONGEST 60000
#define ESCAPE_DEPTH 16       /* children of children */
#define ESCAPE_PROCESSES 1000 /* a look */

static int64_t escape_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void begin(void *context, int64_t program)
{
    struct record_escape *escape = context;
    if (escape->inner.begin)
        escape->inner.begin(escape->inner.context, program);
    escape->root = program;
    escape->pause = ESCAPE_FIRST;
    escape->next = escape_clock() + ESCAPE_FIRST;
}

void record_escape_free(struct record_escape *escape)
{
    table_free(&escape->carry);
}

/* Has the process the driver's library, and has it ours? */
static void read_maps(int64_t pid, bool *has_driver, bool *has_ours)
{
    char path[64], line[PATH_MAX + 256];
    *has_driver = *has_ours = false;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        const char *name = strrchr(line, '/');
        *has_driver |= name && strncmp(name, "/libcuda.so", 11) == 0;
        *has_ours |= name && strncmp(name, "/libcudamem-preload", 19) == 0;
    }
    if (file)
        fclose(file);
}

static void judge(struct record_escape *escape, int64_t pid)
{
    char path[64];
    bool has_driver, has_ours;
    if (table_has(&escape->carry, (uint64_t)pid))
        return;
    read_maps(pid, &has_driver, &has_ours);
    if (has_driver && !has_ours) /* once more: it may have been on its way */
        read_maps(pid, &has_driver, &has_ours);
    if (!has_driver)
        return;
    if (has_ours) {
        table_set(&escape->carry, (uint64_t)pid, 1);
        return;
    }
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/exe", pid);
    ssize_t length = readlink(path, escape->program, sizeof(escape->program) - 1);
    escape->program[length > 0 ? length : 0] = 0;
    escape->pid = pid;
}

static void walk(struct record_escape *escape, int64_t pid, int depth, int *left)
{
    char path[64], children[4096];
    if (escape->pid || depth > ESCAPE_DEPTH || --*left < 0)
        return;
    judge(escape, pid);
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/task/%" PRId64 "/children", pid, pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(children, 1, sizeof(children) - 1, file) : 0;
    if (file)
        fclose(file);
    children[length] = 0;
    for (char *at = children, *end; *at; at = end) {
        long long child = strtoll(at, &end, 10);
        if (end == at || *end != ' ') /* the list was longer than the room for it */
            break;
        walk(escape, child, depth + 1, left);
        end++;
    }
}

/* Look, if it is time.  Milliseconds until the next look, -1: no more. */
static int look_around(struct record_escape *escape)
{
    int left = ESCAPE_PROCESSES;
    int64_t now = escape_clock();
    if (escape->pid || !escape->root)
        return -1;
    if (now < escape->next)
        return (int)(escape->next - now);
    walk(escape, escape->root, 0, &left);
    escape->pause = escape->pause * 2 < ESCAPE_LONGEST ? escape->pause * 2 : ESCAPE_LONGEST;
    escape->next = escape_clock() + escape->pause;
    return escape->pid ? -1 : (int)escape->pause;
}

static int look(void *context)
{
    struct record_escape *escape = context;
    int own = look_around(escape);
    int other = escape->inner.look ? escape->inner.look(escape->inner.context) : -1;
    return own < 0 || (other >= 0 && other < own) ? other : own;
}

void record_escape_watch(struct record_escape *escape, bool keeps, struct record_watch *watch)
{
    if (keeps)
        escape->inner = *watch;
    watch->begin = begin;
    watch->look = look;
    watch->context = escape;
}

void record_escape_tell(const struct record_escape *escape)
{
    if (escape->pid)
        command_note("process %" PRId64 " (%s) has the CUDA driver and not the recorder: something on its way clears "
                     "LD_PRELOAD; keep it there, or put cudamem record right before that program", escape->pid,
                     escape->program);
}
