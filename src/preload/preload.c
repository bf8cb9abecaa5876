/*
 * The injected library's life.  Uses record and the C library; the settings are those that `cudamem record` passes, and
 * may be given by hand.
 */
#include "preload/preload.h"

#include "preload/caching.h"
#include "preload/context.h"
#include "preload/driver.h"
#include "preload/graph_memory.h"
#include "preload/linker.h"
#include "preload/lookup.h"
#include "preload/measure.h"
#include "preload/module.h"
#include "preload/nvtx.h"
#include "preload/virtual.h"
#include "preload/wrap_signal.h"
#include "base/signal_name.h"
#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIFE_OOM_COPIES 3 /* out of memories whose state is kept */

enum { LIFE_NEW, LIFE_STARTING, LIFE_ON, LIFE_OFF };
static atomic_int life;
static atomic_bool life_call_seen, life_event_kept, life_event_lost, life_child_off;
static bool life_debug, life_host, life_follow = true;

static void say(const char *format, va_list list)
{
    char line[1024];
    int prefix = snprintf(line, sizeof(line), "cudamem: ");
    int length = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix - 1, format, list);
    if (length < 0)
        return;
    size_t total = (size_t)prefix + (size_t)length;
    if (total > sizeof(line) - 2)
        total = sizeof(line) - 2;
    line[total] = '\n';
    recorder_write(line, total + 1);
}

void preload_debug(const char *format, ...)
{
    if (!life_debug)
        return;
    char longer[512];
    snprintf(longer, sizeof(longer), "debug: pid %d: %s", (int)getpid(), format);
    va_list list;
    va_start(list, format);
    say(longer, list);
    va_end(list);
}

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
}

static bool is_set(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

static uint64_t number_of(const char *name, uint64_t absent)
{
    const char *value = secure_getenv(name);
    if (!value || *value < '0' || *value > '9')
        return absent;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    return errno || *end ? absent : number;
}

/* A forked child has only the thread that forked. */
static void child_of_fork(void)
{
    virtual_after_fork();
    context_after_fork();
    graph_memory_after_fork();
    measure_after_fork();
    module_after_fork();
    nvtx_after_fork();
    if (!life_follow)
        atomic_store(&life_child_off, true);
}

static bool is_followed(void)
{
    life_follow = number_of("CUDAMEM_FOLLOW", 1) != 0;
    uint64_t first = number_of("CUDAMEM_PID", 0);
    return life_follow || first == 0 || first == (uint64_t)getpid();
}

static bool is_wanted(void)
{
    life_debug = is_set("CUDAMEM_DEBUG");
    return !is_set("CUDAMEM_DISABLE") && is_followed();
}

static unsigned oom_copies(void)
{
    const char *word = secure_getenv("CUDAMEM_ON_OOM");
    return word && strcmp(word, "ignore") == 0 ? 0 : LIFE_OOM_COPIES;
}

/* Before anybody can send it: without a handler it ends the program. */
static void take_signal(void)
{
    const char *name = secure_getenv("CUDAMEM_SIGNAL");
    if (!name || !*name || !is_wanted())
        return;
    int number = signal_number(name);
    if (number)
        recorder_take_signal(number, wrap_signal_next());
    else
        tell("CUDAMEM_SIGNAL=%.40s: no such signal", name);
}

/* Of a list of words with commas between; without a list every word is in it. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, word, length) && (!at[length] || at[length] == ','))
            return true;
    }
    return !list || !*list;
}

static int start_recorder(void)
{
    if (!is_wanted()) {
        preload_debug("switched off");
        return LIFE_OFF;
    }
    life_host = is_set("CUDAMEM_HOST");
    const char *stacks = secure_getenv("CUDAMEM_STACKS");
    struct recorder_options options = {
        .output = secure_getenv("CUDAMEM_OUTPUT"),
        .ring_folder = secure_getenv("CUDAMEM_RING_FOLDER"),
        .max_entries = number_of("CUDAMEM_MAX_ENTRIES", 0),
        .depth = (unsigned)number_of("CUDAMEM_DEPTH", 64),
        .native_stacks = has_word(stacks, "native"),
        .python_stacks = has_word(stacks, "python"),
        .calls = driver_call_names,
        .call_count = CALL_COUNT,
        .oom_copies = oom_copies(),
        .start_paused = is_set("CUDAMEM_START_PAUSED"),
    };
    if (options.depth > 1024)
        options.depth = 1024;
    char message[256] = "";
    if (recorder_start(&options, message, sizeof(message)) != 0) {
        tell("cannot record: %s", message);
        return LIFE_OFF;
    }
    if (message[0])
        tell("%s", message);
    pthread_atfork(NULL, NULL, child_of_fork);
    if (!caching_start(message, sizeof(message)))
        tell("%s", message);
    return LIFE_ON;
}

void preload_start(void)
{
    int state = atomic_load_explicit(&life, memory_order_acquire);
    if (state == LIFE_ON || state == LIFE_OFF)
        return;
    static __thread bool starting; /* the recorder's own start may come by here */
    if (starting)
        return;
    linker_start();
    int expected = LIFE_NEW;
    if (atomic_compare_exchange_strong(&life, &expected, LIFE_STARTING)) {
        starting = true;
        int saved = errno;
        state = start_recorder();
        errno = saved;
        starting = false;
        atomic_store_explicit(&life, state, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&life, memory_order_acquire) == LIFE_STARTING)
        sched_yield();
}

bool preload_enabled(void)
{
    preload_start();
    return atomic_load_explicit(&life, memory_order_acquire) == LIFE_ON;
}

bool preload_recording(void)
{
    return preload_enabled() && !atomic_load_explicit(&life_child_off, memory_order_relaxed);
}

bool preload_is_recording(void)
{
    return atomic_load_explicit(&life, memory_order_acquire) == LIFE_ON &&
           !atomic_load_explicit(&life_child_off, memory_order_relaxed);
}

bool preload_records_host(void)
{
    return life_host;
}

void preload_saw_call(void)
{
    if (!atomic_load_explicit(&life_call_seen, memory_order_relaxed))
        atomic_store_explicit(&life_call_seen, true, memory_order_relaxed);
}

void preload_recorded(bool kept)
{
    atomic_bool *seen = kept ? &life_event_kept : &life_event_lost;
    if (!atomic_load_explicit(seen, memory_order_relaxed))
        atomic_store_explicit(seen, true, memory_order_relaxed);
}

/* A word for `cudamem record`, which otherwise sees no file and cannot know why. */
static void leave_mark(const char *word)
{
    const char *folder = secure_getenv("CUDAMEM_RING_FOLDER");
    char path[1024];
    int length = snprintf(path, sizeof(path), "%s/%s.%d", folder ? folder : "", word, (int)getpid());
    if (!folder || length < 0 || (size_t)length >= sizeof(path))
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* Programs that have no driver pay for a few look-ups here; the recorder starts when a driver turns up. */
__attribute__((constructor)) static void preload_begin(void)
{
    linker_start();
    wrap_signal_start();
    take_signal();
    /* linked with a driver: it is found now, as without us, and while nobody waits for us */
    if (linker_driver_needed() && driver_locate())
        preload_start();
}

__attribute__((destructor)) static void preload_end(void)
{
    int state = atomic_load(&life);
    if (state == LIFE_OFF || !is_wanted())
        return;
    lookup_report();
    if (!atomic_load(&life_call_seen) && linker_driver_mapped())
        leave_mark(PRELOAD_MARK_UNSEEN);
    if (atomic_load(&life_event_lost) && !atomic_load(&life_event_kept))
        leave_mark(PRELOAD_MARK_FAILED);
    if (state == LIFE_ON)
        recorder_finish();
}
