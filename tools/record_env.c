/* What the recorded program finds in its environment.  Uses base, device/driver_find and the C library. */
#include "tools/record_env.h"

#include "base/array.h"
#include "device/driver_find.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENV_PRELOAD "libcudamem-preload.so"
#define ENV_FORWARD "libcudamem-libcuda.so"

static const char *const env_driver_exports[] = {
#define EXPORT(name) #name,
#include "tools/cuda_exports.inc"
#undef EXPORT
};

/* Where our files are, from the folder that this command's file is in.  The build tree comes first: an installed tree
 * has no such folders. */
#define ENV_LIBRARIES ("../" CUDAMEM_LIBDIR)
#define ENV_HELPERS "../" CUDAMEM_LIBEXECDIR "/cudamem"
static const char *const env_preload_places[] = {"../src/preload", ENV_LIBRARIES, "../lib", "../lib64", "."};
static const char *const env_forward_places[] = {"../src/preload", ENV_HELPERS, "../libexec/cudamem", "."};
#define ENV_SIM ("../" CUDAMEM_LIBEXECDIR "/cudamem/sim")
static const char *const env_sim_places[] = {"../src/sim", ENV_SIM, "../libexec/cudamem/sim"};
static const char *const env_history_places[] = {"../src/preload/history", ENV_HELPERS "/history",
                                                 "../libexec/cudamem/history"};
#define PLACES(list) list, sizeof(list) / sizeof(list[0])

static bool own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (length <= 0)
        return false;
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

static bool find_own(const char *const *places, size_t count, const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX], candidate[3 * PATH_MAX];
    if (!own_folder(folder))
        return false;
    for (size_t i = 0; i < count; i++) {
        snprintf(candidate, sizeof(candidate), "%s/%s/%s", folder, places[i], name);
        if (access(candidate, R_OK) == 0 && realpath(candidate, path))
            return true;
    }
    return false;
}

static int add(struct record_env *env, const char *name, const char *value, struct error *err)
{
    if (array_reserve(&env->variables, &env->capacity, env->count + 1, sizeof(*env->variables)))
        return error_no_memory(err);
    struct record_variable variable = {strdup(name), strdup(value)};
    env->variables[env->count++] = variable;
    return variable.name && variable.value ? STATUS_OK : error_no_memory(err);
}

static int add_number(struct record_env *env, const char *name, uint64_t value, struct error *err)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return add(env, name, text, err);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

struct missing {
    size_t count;
    char first[128];
};

/* The driver's interface has names like cuMemAlloc; what else the library exports is for debuggers, who read the real
 * one, which is loaded as well. */
static bool note_unknown(const char *name, bool is_function, void *context)
{
    struct missing *missing = context;
    bool is_interface = is_function && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
    if (is_interface && !bsearch(&name, env_driver_exports, sizeof(env_driver_exports) / sizeof(env_driver_exports[0]),
                                 sizeof(env_driver_exports[0]), compare_names) &&
        missing->count++ == 0)
        snprintf(missing->first, sizeof(missing->first), "%s", name);
    return true;
}

/* May the forwarding object stand in for this driver?  If not, the remark says why. */
static bool may_forward(const char *driver, struct record_env *env)
{
    struct missing missing = {0};
    struct error err = {0};
    if (driver_exports(driver, note_unknown, &missing, &err)) {
        snprintf(env->remark, sizeof(env->remark), "%s", err.message);
        return false;
    }
    if (missing.count)
        snprintf(env->remark, sizeof(env->remark),
                 "%.200s has %zu functions newer than this cudamem (%s ...): libraries loaded with RTLD_DEEPBIND may go "
                 "unseen",
                 driver, missing.count, missing.first);
    return missing.count == 0;
}

static const char *base_name(const char *path, size_t length, size_t *name_length)
{
    size_t start = length;
    while (start > 0 && path[start - 1] != '/')
        start--;
    *name_length = length - start;
    return path + start;
}

static bool is_own_library(const char *entry, size_t length)
{
    size_t name_length;
    const char *name = base_name(entry, length, &name_length);
    return (name_length == strlen(ENV_PRELOAD) && memcmp(name, ENV_PRELOAD, name_length) == 0) ||
           (name_length == strlen(ENV_FORWARD) && memcmp(name, ENV_FORWARD, name_length) == 0);
}

/* What was in LD_PRELOAD, without an outer recording's libraries. */
static void add_others(struct text *list, const char *others)
{
    while (others && *others) {
        size_t length = strcspn(others, ": ");
        if (length && !is_own_library(others, length)) {
            text_char(list, ':');
            text_append(list, others, length);
        }
        others += length;
        if (*others)
            others++;
    }
}

bool record_env_is_nested(void)
{
    for (const char *list = getenv("LD_PRELOAD"); list && *list;) {
        size_t length = strcspn(list, ": ");
        if (length && is_own_library(list, length))
            return true;
        list += length + (list[length] != 0);
    }
    return false;
}

static int add_preload(struct record_env *env, const char *preload, const char *forward, struct error *err)
{
    struct text list = {0};
    if (strpbrk(preload, ": ") || (forward && strpbrk(forward, ": ")))
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: LD_PRELOAD cannot name a path with a space or a colon; install cudamem elsewhere",
                         preload);
    text_add(&list, preload);
    add_others(&list, getenv("LD_PRELOAD"));
    if (forward) {
        text_char(&list, ':');
        text_add(&list, forward);
    }
    int status = text_failed(&list) ? error_no_memory(err) : add(env, "LD_PRELOAD", text_string(&list), err);
    text_free(&list);
    return status;
}

/* NVTX asks the library that this names; another tool's stays. */
static int add_nvtx(struct record_env *env, const char *preload, struct error *err)
{
    const char *set = getenv("NVTX_INJECTION64_PATH");
    bool is_others = set && *set && !is_own_library(set, strlen(set));
    return is_others ? STATUS_OK : add(env, "NVTX_INJECTION64_PATH", preload, err);
}

static int add_sim(const struct record_settings *settings, struct record_env *env, struct text *library_path,
                   struct error *err)
{
    char driver[PATH_MAX];
    const char *before = getenv("LD_LIBRARY_PATH");
    if (!find_own(PLACES(env_sim_places), "libcuda.so.1", driver))
        return error_set(err, STATUS_NOT_FOUND, "the simulated device is not installed beside this command");
    *strrchr(driver, '/') = 0;
    text_add(library_path, driver);
    if (before && *before) {
        text_char(library_path, ':');
        text_add(library_path, before);
    }
    if (text_failed(library_path))
        return error_no_memory(err);
    int status = add(env, "LD_LIBRARY_PATH", text_string(library_path), err);
    if (status == STATUS_OK && settings->sim_devices)
        status = add(env, "CUDAMEM_SIM", settings->sim_devices, err);
    return status;
}

static int add_settings(const struct record_settings *settings, struct record_env *env, struct error *err)
{
    int status = STATUS_OK;
    if (settings->output)
        status = add(env, "CUDAMEM_OUTPUT", settings->output, err);
    if (!status && settings->ring_folder)
        status = add(env, "CUDAMEM_RING_FOLDER", settings->ring_folder, err);
    if (!status)
        status = add(env, "CUDAMEM_STACKS", settings->stacks, err);
    if (!status && settings->depth)
        status = add_number(env, "CUDAMEM_DEPTH", settings->depth, err);
    if (!status && settings->max_entries)
        status = add_number(env, "CUDAMEM_MAX_ENTRIES", settings->max_entries, err);
    if (!status)
        status = add(env, "CUDAMEM_HOST", settings->host ? "1" : "0", err);
    if (!status)
        status = add(env, "CUDAMEM_FOLLOW", settings->no_follow ? "0" : "1", err);
    if (!status && settings->on_oom)
        status = add(env, "CUDAMEM_ON_OOM", settings->on_oom, err);
    if (!status && settings->signal)
        status = add_number(env, "CUDAMEM_SIGNAL", (uint64_t)settings->signal, err);
    if (!status && settings->start_paused)
        status = add(env, "CUDAMEM_START_PAUSED", "1", err);
    return status;
}

/* PyTorch hands each tensor on with its stream, unless the user says how its memory is had. */
static int add_allocator(const struct record_settings *settings, struct record_env *env, struct error *err)
{
    static const char *const theirs[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    const char *set = NULL;
    if (!settings->caching)
        return STATUS_OK;
    int status = add(env, "CUDAMEM_ALLOCATOR", "caching", err);
    if (!status && settings->conf)
        status = add(env, "CUDAMEM_ALLOC_CONF", settings->conf, err);
    if (!status && settings->memory_limit)
        status = add_number(env, "CUDAMEM_MEMORY_LIMIT", settings->memory_limit, err);
    for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]) && !set; i++)
        if (getenv(theirs[i]) && *getenv(theirs[i]))
            set = theirs[i];
    if (set)
        snprintf(env->allocator_remark, sizeof(env->allocator_remark),
                 "%s is set and stays: PyTorch's own allocator may stand between its tensors and ours "
                 "(backend:cudaMallocAsync hands each one on)", set);
    else if (!status)
        status = add(env, theirs[0], "backend:cudaMallocAsync", err);
    return status;
}

/* Python finds our sitecustomize before the user's, which it runs. */
static int add_history(const struct record_settings *settings, struct record_env *env, struct error *err)
{
    char found[PATH_MAX];
    struct text path = {0};
    const char *before = getenv("PYTHONPATH");
    if (!settings->torch_history)
        return STATUS_OK;
    if (!find_own(PLACES(env_history_places), "sitecustomize.py", found))
        return error_set(err, STATUS_NOT_FOUND, "--torch-history: sitecustomize.py is not installed beside this command");
    *strrchr(found, '/') = 0;
    text_add(&path, found);
    if (before && *before)
        text_printf(&path, ":%s", before);
    int status = text_failed(&path) ? error_no_memory(err) : add(env, "PYTHONPATH", text_string(&path), err);
    text_free(&path);
    return status ? status : add(env, "CUDAMEM_TORCH_HISTORY", "1", err);
}

int record_env_make(const struct record_settings *settings, struct record_env *env, struct error *err)
{
    char preload[PATH_MAX], forward[PATH_MAX], driver[PATH_MAX];
    struct text library_path = {0};
    memset(env, 0, sizeof(*env));
    if (!find_own(PLACES(env_preload_places), ENV_PRELOAD, preload))
        return error_set(err, STATUS_NOT_FOUND, ENV_PRELOAD " is not installed beside this command");
    int status = settings->sim ? add_sim(settings, env, &library_path, err) : STATUS_OK;
    bool forwards = false;
    if (!status && find_own(PLACES(env_forward_places), ENV_FORWARD, forward)) {
        const char *path = settings->sim ? text_string(&library_path) : getenv("LD_LIBRARY_PATH");
        forwards = driver_find(path, driver, sizeof(driver), NULL) == STATUS_OK && may_forward(driver, env);
    }
    if (!status)
        status = add_preload(env, preload, forwards ? forward : NULL, err);
    if (!status)
        status = add_nvtx(env, preload, err);
    if (!status && forwards)
        status = add(env, "CUDAMEM_DRIVER", driver, err);
    if (!status)
        status = add_settings(settings, env, err);
    if (!status)
        status = add_allocator(settings, env, err);
    if (!status)
        status = add_history(settings, env, err);
    text_free(&library_path);
    return status;
}

void record_env_free(struct record_env *env)
{
    for (size_t i = 0; i < env->count; i++) {
        free(env->variables[i].name);
        free(env->variables[i].value);
    }
    free(env->variables);
    memset(env, 0, sizeof(*env));
}

/* Of an outer recording, or of an earlier one: what we do not set must not be found. */
static const char *const env_ours[] = {"CUDAMEM_OUTPUT", "CUDAMEM_RING_FOLDER", "CUDAMEM_STACKS", "CUDAMEM_DEPTH",
                                       "CUDAMEM_MAX_ENTRIES", "CUDAMEM_HOST", "CUDAMEM_FOLLOW", "CUDAMEM_PID",
                                       "CUDAMEM_ON_OOM", "CUDAMEM_SIGNAL", "CUDAMEM_START_PAUSED",
                                       "CUDAMEM_DRIVER", "CUDAMEM_ALLOCATOR", "CUDAMEM_MEMORY_LIMIT", "CUDAMEM_TORCH_HISTORY"};

int record_env_apply(const struct record_env *env, struct error *err)
{
    for (size_t i = 0; i < sizeof(env_ours) / sizeof(env_ours[0]); i++)
        unsetenv(env_ours[i]);
    for (size_t i = 0; i < env->count; i++)
        if (setenv(env->variables[i].name, env->variables[i].value, 1))
            return error_set(err, STATUS_NO_MEMORY, "environment: %s", strerror(errno));
    return STATUS_OK;
}

void record_env_print(const struct record_env *env, struct text *text)
{
    for (size_t i = 0; i < env->count; i++) {
        const char *value = env->variables[i].value;
        bool plain = value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789_./:,%+@=-")] == 0;
        text_printf(text, "%s=", env->variables[i].name);
        if (!plain)
            text_char(text, '\'');
        for (const char *c = value; *c; c++) {
            if (*c == '\'')
                text_add(text, "'\\''");
            else
                text_char(text, *c);
        }
        text_add(text, plain ? "\n" : "'\n");
    }
}
