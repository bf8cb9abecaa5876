/*
 * The recorder's beginning and end, and the facts that are learnt on the way: all that need not be fast.  Reads
 * the environment, /proc and the host's name once, so that nothing must be looked up while recording.
 */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static void read_boot_id(void)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, recorder.boot_id, sizeof(recorder.boot_id) - 1);
    if (fd >= 0)
        close(fd);
    recorder.boot_id[length < 0 ? 0 : length] = 0;
    recorder.boot_id[strcspn(recorder.boot_id, "\n")] = 0;
}

static void read_program(void)
{
    ssize_t length = readlink("/proc/self/exe", recorder.program, sizeof(recorder.program) - 1);
    if (length > 0)
        recorder.program[length] = 0;
    else
        copy_text(recorder.program, sizeof(recorder.program), program_invocation_name);
}

static int64_t read_rank(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
                                        "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *text = secure_getenv(names[i]);
        char *end = NULL;
        long rank = text && *text ? strtol(text, &end, 10) : -1;
        if (rank >= 0 && end && !*end)
            return rank;
    }
    return -1;
}

/* Only what decides how memory is taken; never anything else of the environment. */
static bool is_setting(const char *variable)
{
    static const char *const names[] = {
        "CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER=", "CUDA_LAUNCH_BLOCKING=", "CUDA_MODULE_LOADING=",
        "CUDA_DEVICE_MAX_CONNECTIONS=", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=", "PYTORCH_CUDA_ALLOC_CONF=",
        "PYTORCH_ALLOC_CONF=", "PYTORCH_NO_CUDA_MEMORY_CACHING=", "CUDAMEM_ALLOC_CONF=",
        "CUDAMEM_ALLOCATOR=", "CUDAMEM_MEMORY_LIMIT=",
        "XLA_PYTHON_CLIENT_PREALLOCATE=", "XLA_PYTHON_CLIENT_MEM_FRACTION=", "XLA_PYTHON_CLIENT_ALLOCATOR=",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strncmp(variable, names[i], strlen(names[i])))
            return true;
    return false;
}

static void read_environment(void)
{
    size_t used = 0;
    memset(recorder.environment, 0, sizeof(recorder.environment));
    for (char **variable = environ; variable && *variable; variable++) {
        size_t length = strlen(*variable) + 1;
        if (!is_setting(*variable) || length >= sizeof(recorder.environment) - used)
            continue;
        memcpy(recorder.environment + used, *variable, length);
        used += length;
    }
}

/* Wiped by fork, so that a child finds RECORDER_NONE there whatever way it was made. */
static uint32_t *state_page(void)
{
    void *page = mmap(NULL, recorder.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

static void forget_state(void)
{
    if (recorder.state)
        *recorder.state = RECORDER_NONE;
}

static void read_facts(const struct recorder_options *options)
{
    recorder.max_entries = options->max_entries ? options->max_entries : RING_DEFAULT_ENTRIES;
    if (recorder.max_entries > RING_MAX_SLOTS)
        recorder.max_entries = RING_MAX_SLOTS;
    recorder.depth = options->depth < RECORDER_DEPTH_MAX ? options->depth : RECORDER_DEPTH_MAX;
    recorder.max_nodes = RECORDER_MAX_NODES;
    recorder.oom_copies = options->oom_copies;
    recorder.start_paused = options->start_paused;
    recorder.calls = options->calls;
    recorder.call_count = options->calls ? options->call_count : 0;
    copy_text(recorder.output, sizeof(recorder.output), options->output);
    const char *folder = options->ring_folder ? options->ring_folder : secure_getenv("CUDAMEM_RING_FOLDER");
    copy_text(recorder.wanted_folder, sizeof(recorder.wanted_folder), folder);
    if (gethostname(recorder.host, sizeof(recorder.host) - 1))
        recorder.host[0] = 0;
    read_boot_id();
    read_program();
    read_environment();
    recorder.rank = read_rank();
    ticks_sample(&recorder.start);
}

int recorder_start(const struct recorder_options *options, char *message, size_t message_size)
{
    if (message_size)
        message[0] = 0;
    if (recorder.state)
        return 0;
    if (getauxval(AT_SECURE)) {
        snprintf(message, message_size, "set-user-id programs are not recorded");
        return -1;
    }
    recorder.page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *state = state_page();
    if (!state) {
        snprintf(message, message_size, "no memory for the recorder's state");
        return -1;
    }
    ticks_choose();
    read_facts(options);
    recorder.stacks = options->native_stacks && options->depth > 0 && stack_start(message, message_size) == 0;
    recorder.python = options->python_stacks && options->depth > 0;
    recorder_threads_start();
    if (madvise(state, recorder.page, MADV_WIPEONFORK))
        pthread_atfork(NULL, NULL, forget_state); /* an old kernel: children by raw clone are not noticed */
    __atomic_store_n(&recorder.state, state, __ATOMIC_RELEASE);
    return 0;
}

static struct ring_device *open_device(uint16_t ordinal)
{
    return recorder.state && recorder_state() == RECORDER_READY ? &recorder.devices[ordinal] : NULL;
}

void recorder_device(uint16_t ordinal, const char *name, const uint8_t uuid[16], uint64_t total_bytes)
{
    if (ordinal >= RING_DEVICES || !lock_try(&recorder.fact_lock))
        return;
    struct recorder_fact *fact = &recorder.facts[ordinal];
    copy_text(fact->name, sizeof(fact->name), name);
    if (uuid)
        memcpy(fact->uuid, uuid, sizeof(fact->uuid));
    fact->total = total_bytes;
    uint32_t known = (name ? RING_DEVICE_NAME : 0) | (uuid ? RING_DEVICE_UUID : 0) | (total_bytes ? RING_DEVICE_TOTAL : 0);
    known |= __atomic_fetch_or(&fact->known, known, __ATOMIC_RELAXED);
    struct ring_device *device = open_device(ordinal);
    if (device) {
        memcpy(device->name, fact->name, sizeof(device->name));
        memcpy(device->uuid, fact->uuid, sizeof(device->uuid));
        device->total = total_bytes;
        __atomic_fetch_or(&device->known, known, __ATOMIC_RELEASE);
    }
    lock_release(&recorder.fact_lock);
}

void recorder_driver(int version, const char *path)
{
    if (!lock_try(&recorder.fact_lock))
        return;
    recorder.driver_version = version;
    copy_text(recorder.driver_path, sizeof(recorder.driver_path), path);
    if (recorder.state && recorder_state() == RECORDER_READY) {
        recorder.header->driver_version = version;
        memcpy(recorder.header->driver_path, recorder.driver_path, sizeof(recorder.driver_path));
    }
    lock_release(&recorder.fact_lock);
}

uint64_t recorder_known(uint16_t ordinal)
{
    struct ring_device *device = ordinal < RING_DEVICES ? open_device(ordinal) : NULL;
    int64_t bytes = device ? __atomic_load_n(&device->stats[RING_BYTES][RING_ALL].current, __ATOMIC_RELAXED) : 0;
    return bytes > 0 ? (uint64_t)bytes : 0;
}

void recorder_device_free(uint16_t ordinal, uint64_t free_bytes, uint64_t pool_bytes)
{
    if (ordinal >= RING_DEVICES)
        return;
    __atomic_store_n(&recorder.facts[ordinal].free_bytes, free_bytes, __ATOMIC_RELAXED);
    __atomic_fetch_or(&recorder.facts[ordinal].known, RING_DEVICE_FREE, __ATOMIC_RELAXED);
    struct ring_device *device = open_device(ordinal);
    if (device) {
        __atomic_store_n(&device->free_bytes, free_bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&device->known_bytes, recorder_known(ordinal), __ATOMIC_RELAXED);
        __atomic_store_n(&device->pool_bytes, pool_bytes, __ATOMIC_RELAXED);
        __atomic_fetch_or(&device->known, RING_DEVICE_FREE, __ATOMIC_RELAXED);
    }
}

void recorder_finish(void)
{
    if (!recorder.state || recorder_state() != RECORDER_READY)
        return;
    struct ring_header *header = recorder.header;
    struct ring_calibration now;
    ticks_calibrate(UINT64_MAX - 1);
    ticks_sample(&now);
    __atomic_store_n(&header->end_time, now.realtime, __ATOMIC_RELAXED);
    __atomic_fetch_or(&header->state, RING_FINISHED, __ATOMIC_RELEASE);
}

/* A line of ours must not end the program: where nobody reads it or a limit stands in the way, the signal that the write
 * brings is taken back, unless the program had it pending before. */
void recorder_write(const char *line, size_t length)
{
    sigset_t ours, before, pending;
    int saved = errno, cancel = cancel_off();
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    if (write(STDERR_FILENO, line, length) < 0 && (errno == EPIPE || errno == EFBIG)) {
        struct timespec none = {0, 0};
        int number = errno == EPIPE ? SIGPIPE : SIGXFSZ;
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, number);
        if (!sigismember(&pending, number))
            sigtimedwait(&one, NULL, &none);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    cancel_as(cancel);
    errno = saved;
}

/* One line, once, by one write: no stdio, which the program may hold. */
void recorder_say(const char *what, const char *detail, int error)
{
    static uint32_t said;
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        return;
    char line[3600];
    const char *reason = strerrordesc_np(error);
    int length = snprintf(line, sizeof(line), "cudamem: %s %s: %s\n", what, detail, reason ? reason : "unknown error");
    if (length >= (int)sizeof(line))
        length = sizeof(line) - 1;
    if (length > 0)
        recorder_write(line, (size_t)length);
}
