/*
 * The simulated driver: starting, looking up entry points, errors, control.
 * May use: the simulated device, base.
 */
#include "sim/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

struct driver driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static CUresult started = CUDA_ERROR_NOT_INITIALIZED;

void driver_lock(void)
{
    pthread_mutex_lock(&driver.lock);
}

void driver_unlock(void)
{
    pthread_mutex_unlock(&driver.lock);
}

uint64_t driver_id(void) /* the lock is held */
{
    return ++driver.next_id;
}

bool driver_device(CUdevice device)
{
    return device >= 0 && (unsigned)device < sim_settings(driver.sim)->devices;
}

/* A forked child finds the locks free, and the driver dead, as with a real one. */
static void before_fork(void)
{
    pthread_mutex_lock(&start_lock);
    pthread_mutex_lock(&driver.lock);
    sim_hold(driver.sim, true);
}

static void after_fork(void)
{
    sim_hold(driver.sim, false);
    pthread_mutex_unlock(&driver.lock);
    pthread_mutex_unlock(&start_lock);
}

static void after_fork_child(void)
{
    after_fork();
    if (driver.sim && !sim_settings(driver.sim)->fork) {
        driver.forked = true;
        started = CUDA_ERROR_NOT_INITIALIZED;
    }
}

static CUresult start_pools(void)
{
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < sim_settings(driver.sim)->devices && !result; i++) {
        result = driver_pool_new(i, 0, true, &driver.default_pool[i]);
        driver.pool[i] = driver.default_pool[i];
    }
    return result;
}

static CUresult start(void)
{
    struct sim_config config = {0};
    struct error err = {0};
    const char *events = secure_getenv("CUDAMEM_SIM_EVENTS"), *context = secure_getenv("CUDAMEM_SIM_CONTEXT");
    const char *module = secure_getenv("CUDAMEM_SIM_MODULE");
    const char *fork = secure_getenv("CUDAMEM_SIM_FORK"), *faults = secure_getenv("CUDAMEM_SIM_FAULTS");
    int status = sim_config_devices(&config, secure_getenv("CUDAMEM_SIM"), &err);
    config.manual = events && strcmp(events, "manual") == 0;
    config.fork = fork && strcmp(fork, "1") == 0;
    if (!status && events && *events && !config.manual && strcmp(events, "auto") != 0)
        status = error_set(&err, STATUS_USAGE, "CUDAMEM_SIM_EVENTS is \"%s\", not manual or auto", events);
    if (!status && context && *context)
        status = size_parse(context, &config.context_bytes, &err);
    if (!status && module && *module)
        status = size_parse(module, &driver.module_bytes, &err);
    if (!status && config.devices == 0)
        return CUDA_ERROR_NO_DEVICE;
    if (!status && !driver.sim)
        driver.sim = sim_new(&config);
    if (!status && !driver.sim)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!status && faults && *faults) {
        status = sim_faults(driver.sim, faults, &err);
        driver.careful = true;
    }
    if (status) {
        snprintf(driver.wrong, sizeof driver.wrong, "%s", err.message);
        return CUDA_ERROR_SYSTEM_NOT_READY;
    }
    CUresult result = start_pools();
    if (!result)
        pthread_atfork(before_fork, after_fork, after_fork_child);
    return result;
}

CUresult cuInit(unsigned int flags)
{
    ENTER(cuInit, NEED_NOTHING);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&start_lock);
    if (started != CUDA_SUCCESS && !driver.forked) {
        started = start();
        driver.ready = started == CUDA_SUCCESS;
    }
    CUresult result = started;
    pthread_mutex_unlock(&start_lock);
    return result;
}

CUresult cuDriverGetVersion(int *version)
{
    ENTER(cuDriverGetVersion, NEED_NOTHING);
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

/* Counting. */

static _Atomic(struct call *) calls;
static atomic_ullong all_calls;

static void list_call(struct call *call)
{
    bool no = false;
    if (!atomic_compare_exchange_strong(&call->listed, &no, true))
        return;
    call->next = atomic_load(&calls);
    while (!atomic_compare_exchange_weak(&calls, &call->next, call))
        ;
}

CUresult driver_enter(struct call *call, enum need need)
{
    if (!atomic_load_explicit(&call->listed, memory_order_relaxed))
        list_call(call);
    atomic_fetch_add_explicit(&call->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&all_calls, 1, memory_order_relaxed);
    if (need == NEED_NOTHING)
        return CUDA_SUCCESS;
    if (!driver.ready || driver.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (driver.careful) {
        CUresult result = sim_enter(driver.sim, call->name);
        if (result)
            return result;
    }
    if (need == NEED_INIT)
        return CUDA_SUCCESS;
    CUcontext context = driver_current();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return need == NEED_SAFE && driver.captures ? driver_capture_check() : CUDA_SUCCESS;
}

unsigned long long cudamemSimControlCalls(const char *name)
{
    if (!name)
        return all_calls;
    for (struct call *call = calls; call; call = call->next)
        if (strcmp(call->name, name) == 0)
            return call->count;
    return 0;
}

void cudamemSimControlManual(int manual)
{
    if (driver.ready)
        sim_set_manual(driver.sim, manual != 0);
}

unsigned long long cudamemSimControlComplete(CUstream stream, unsigned long long count)
{
    if (!driver.ready)
        return 0;
    if (stream && !(stream = driver_stream(stream)))
        return 0;
    return sim_complete(driver.sim, stream ? stream->work : NULL, count);
}

int cudamemSimControlFaults(const char *text)
{
    struct error err;
    if (!driver.ready)
        return STATUS_NOT_FOUND;
    driver.careful = true;
    return sim_faults(driver.sim, text, &err);
}

void cudamemSimControlLose(CUdevice device)
{
    if (!driver.ready || !driver_device(device))
        return;
    driver.careful = true;
    sim_lose(driver.sim, (unsigned)device);
}

/* Looking up. */

struct name {
    const char *base;
    int since;
    bool thread;
    void (*function)(void);
};

#define NAME(base, since, function) {#base, since, false, (void (*)(void))function},
#define THREAD(base, since, function) {#base, since, true, (void (*)(void))function},
static const struct name names[] = {
#include "sim/driver_names.h"
};

/* Control functions are not exported, so that the library has the names of a real one and no others. */
static const struct name controls[] = {NAME(cudamemSimControlCalls, 0, cudamemSimControlCalls)
    NAME(cudamemSimControlManual, 0, cudamemSimControlManual)
    NAME(cudamemSimControlComplete, 0, cudamemSimControlComplete)
    NAME(cudamemSimControlFaults, 0, cudamemSimControlFaults)
    NAME(cudamemSimControlLose, 0, cudamemSimControlLose)
    NAME(cudamemSimControlVariable, 0, cudamemSimControlVariable)};
#undef NAME
#undef THREAD

static CUresult look_up(const char *name, void **function, int version, cuuint64_t flags,
    CUdriverProcAddressQueryResult *status)
{
    if (!name || !function || version > DRIVER_VERSION || flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    const cuuint64_t thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct name *best = NULL;
    bool known = false, has_thread = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].thread && strcmp(names[i].base, name) == 0)
            has_thread = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].base, name) != 0)
            continue;
        known = true;
        if (names[i].thread != (thread && has_thread) || (version >= 0 && names[i].since > version))
            continue;
        if (!best || names[i].since > best->since)
            best = &names[i];
    }
    for (size_t i = 0; !known && i < sizeof controls / sizeof *controls; i++)
        if (strcmp(controls[i].base, name) == 0)
            best = &controls[i];
    *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
              : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *answer = NULL;
    if (best)
        memcpy(&answer, &best->function, sizeof answer);
    *function = answer;
    return CUDA_SUCCESS;
}

/* The second version always succeeds and says in status what came of it; the first one fails and touches nothing. */
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
    CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult own;
    ENTER(cuGetProcAddress_v2, NEED_NOTHING);
    CUresult result = look_up(name, function, version, flags, &own);
    if (!result && status)
        *status = own;
    return result;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;
    void *answer;
    ENTER(cuGetProcAddress, NEED_NOTHING);
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = look_up(name, &answer, version, flags, &status);
    if (result || status != CU_GET_PROC_ADDRESS_SUCCESS)
        return result ? result : CUDA_ERROR_NOT_FOUND;
    *function = answer;
    return CUDA_SUCCESS;
}

/* What NVIDIA's own libraries ask for is not a public interface; there is none here. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    ENTER(cuGetExportTable, NEED_NOTHING);
    if (table)
        *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

/* Errors. */

static const struct {
    CUresult code;
    const char *name;
} errors[] = {
#define RESULT(name, value) {name, #name},
    CUDA_ABI_RESULTS(RESULT)
#undef RESULT
};

static const char *error_name(CUresult error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == error)
            return errors[i].name;
    return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    ENTER(cuGetErrorName, NEED_NOTHING);
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error_name(error);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    static const struct {
        CUresult code;
        const char *text;
    } sentences[] = {{CUDA_SUCCESS, "no error"}, {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
        {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"}, {CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
        {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
        {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"}, {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
        {CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"}, {CUDA_ERROR_NOT_FOUND, "named symbol not found"},
        {CUDA_ERROR_NOT_READY, "device not ready"}, {CUDA_ERROR_NOT_SUPPORTED, "operation not supported"},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"},
        {CUDA_ERROR_UNKNOWN, "unknown error"}};
    ENTER(cuGetErrorString, NEED_NOTHING);
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error_name(error);
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (sentences[i].code == error)
            *text = sentences[i].text;
    if (error == CUDA_ERROR_SYSTEM_NOT_READY && driver.wrong[0])
        *text = driver.wrong;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuProfilerStart(void)
{
    ENTER(cuProfilerStart, NEED_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
    ENTER(cuProfilerStop, NEED_CONTEXT);
    return CUDA_SUCCESS;
}
