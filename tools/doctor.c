/* The machine: recorder, driver, space.  Uses device, base and the recorder's command parts. */
#include "tools/doctor.h"

#include "base/array.h"
#include "base/size.h"
#include "base/text.h"
#include "device/driver_find.h"
#include "device/nvml.h"
#include "record/ring.h"
#include "tools/record_env.h"
#include "tools/record_folder.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DOCTOR_TMPFS 0x01021994

void doctor_say(struct doctor *doctor, enum doctor_verdict verdict, const char *about, const char *remedy,
                const char *format, ...)
{
    struct doctor_finding finding = {.verdict = verdict, .about = about};
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&finding.text, format, arguments);
    va_end(arguments);
    finding.remedy = remedy ? strdup(remedy) : NULL;
    doctor->is_bad |= verdict == DOCTOR_BAD;
    if (length < 0 || (remedy && !finding.remedy) ||
        array_reserve(&doctor->findings, &doctor->capacity, doctor->count + 1, sizeof(*doctor->findings))) {
        doctor->no_memory = true;
        if (length >= 0)
            free(finding.text);
        free(finding.remedy);
        return;
    }
    doctor->findings[doctor->count++] = finding;
}

void doctor_free(struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        free(doctor->findings[i].text);
        free(doctor->findings[i].remedy);
    }
    free(doctor->findings);
    memset(doctor, 0, sizeof(*doctor));
}

static const char *variable(const struct record_env *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++)
        if (strcmp(env->variables[i].name, name) == 0)
            return env->variables[i].value;
    return NULL;
}

/* --- the driver ---------------------------------------------------------------------------------------------------- */

/* libcuda.so.1 is a link to libcuda.so.VERSION. */
static void version_of(const char *driver, char version[64])
{
    char file[PATH_MAX];
    const char *name = realpath(driver, file) ? strstr(file, "libcuda.so.") : NULL;
    snprintf(version, 64, "%.60s", name && strchr(name + 11, '.') ? name + 11 : "");
}

static void driver_there(struct doctor *doctor, const char *driver)
{
    char version[64];
    struct nvml *nvml = NULL;
    struct nvml_device *devices = NULL;
    struct error err = {0};
    size_t count = 0;
    version_of(driver, version);
    if (nvml_open(&nvml, &err) == STATUS_OK && *nvml_driver(nvml))
        snprintf(version, sizeof(version), "%.60s", nvml_driver(nvml));
    doctor_say(doctor, DOCTOR_OK, "driver", NULL, "%s%s%s", driver, *version ? ", version " : "", version);
    if (access("/dev/nvidiactl", F_OK) == 0 && access("/dev/nvidiactl", R_OK | W_OK))
        doctor_say(doctor, DOCTOR_BAD, "devices", "give this user the right to /dev/nvidia* (a group, udev rules)",
                   "/dev/nvidiactl may not be opened: %s", strerror(errno));
    else if (!nvml)
        doctor_say(doctor, DOCTOR_NOTE, "devices", NULL, "how many there are is not known: %s", err.message);
    else if (nvml_devices(nvml, &devices, &count, &err))
        doctor_say(doctor, DOCTOR_NOTE, "devices", NULL, "how many there are is not known: %s", err.message);
    else if (!count)
        doctor_say(doctor, DOCTOR_BAD, "devices", "in a container, start it with its GPUs (--gpus all)",
                   "the driver shows no GPU");
    for (size_t i = 0; i < count; i++) {
        char total[SIZE_TEXT], left[SIZE_TEXT];
        doctor_say(doctor, DOCTOR_OK, "devices", NULL, "%u: %s, %s of %s free", devices[i].index, devices[i].name,
                   size_format(devices[i].free, left), size_format(devices[i].total, total));
    }
    free(devices);
    if (nvml)
        nvml_close(nvml);
}

static void look_at_driver(struct doctor *doctor, bool is_sim)
{
    char driver[PATH_MAX];
    struct error err = {0};
    if (is_sim)
        doctor_say(doctor, DOCTOR_OK, "driver", NULL, "the simulated one");
    else if (driver_find(getenv("LD_LIBRARY_PATH"), driver, sizeof(driver), &err))
        doctor_say(doctor, DOCTOR_BAD, "driver",
                   "install NVIDIA's driver, or start the container with its GPUs (--gpus all); --sim records without",
                   "%s: CUDA programs do not start here", err.message);
    else
        driver_there(doctor, driver);
}

/* --- the recorder -------------------------------------------------------------------------------------------------- */

static void look_at_recorder(struct doctor *doctor, bool is_sim)
{
    struct record_settings settings = {.stacks = "native", .sim = is_sim};
    struct record_env env;
    struct error err = {0};
    char first[PATH_MAX] = "";
    if (record_env_make(&settings, &env, &err)) {
        doctor_say(doctor, DOCTOR_BAD, "recorder", "install cudamem as a whole: its command and its libraries belong together",
                   "%s", err.message);
    } else {
        const char *preload = variable(&env, "LD_PRELOAD");
        snprintf(first, sizeof(first), "%.*s", (int)strcspn(preload ? preload : "", ":"), preload ? preload : "");
        doctor_say(doctor, DOCTOR_OK, "recorder", NULL, "%s", first);
        if (env.remark[0])
            doctor_say(doctor, DOCTOR_NOTE, "recorder", "a newer cudamem knows them", "%s", env.remark);
    }
    record_env_free(&env);
    void *unwinder = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
    if (!unwinder)
        unwinder = dlopen("libunwind.so", RTLD_LAZY | RTLD_LOCAL);
    if (unwinder && dlsym(unwinder, "unw_backtrace"))
        doctor_say(doctor, DOCTOR_OK, "stacks", NULL, "libunwind takes native frames");
    else
        doctor_say(doctor, DOCTOR_NOTE, "stacks", "install libunwind (libunwind8)", "libunwind is not there: no native frames");
    if (unwinder)
        dlclose(unwinder);
}

/* --- space --------------------------------------------------------------------------------------------------------- */

static void judge_space(struct doctor *doctor, const char *folder)
{
    const uint64_t ring = (uint64_t)RING_DEFAULT_ENTRIES * sizeof(struct ring_slot);
    const uint64_t least = 2 * ring; /* a device's ring, and as much again for stacks and what is alive */
    struct statvfs space;
    struct statfs system;
    struct rlimit limit;
    char left[SIZE_TEXT], need[SIZE_TEXT];
    static const char remedy[] = "set TMPDIR to a folder with more room, or keep fewer entries (record --max-entries 16Ki)";
    if (statvfs(folder, &space)) {
        doctor_say(doctor, DOCTOR_NOTE, "space", NULL, "%s: %s", folder, strerror(errno));
        return;
    }
    uint64_t available = (uint64_t)space.f_bavail * space.f_frsize;
    size_format(available, left);
    size_format(ring, need);
    if (available < least)
        doctor_say(doctor, DOCTOR_BAD, "space", remedy, "%s has %s left; a ring takes %s a device, and what stacks need", folder,
                   left, need);
    else
        doctor_say(doctor, DOCTOR_OK, "space", NULL, "%s, %s left; a ring takes %s a device", folder, left, need);
    if (statfs(folder, &system) == 0 && (unsigned long)system.f_type == DOCTOR_TMPFS)
        doctor_say(doctor, DOCTOR_NOTE, "space", "set TMPDIR to a folder on a disk",
                   "it lies in memory, which counts against a container's limit");
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < least)
        doctor_say(doctor, DOCTOR_BAD, "space", "ulimit -f unlimited", "files may not be larger than %s here",
                   size_format(limit.rlim_cur, left));
}

static void look_at_space(struct doctor *doctor)
{
    char folder[PATH_MAX];
    struct error err = {0};
    if (record_folder_make(folder, sizeof(folder), &err)) {
        doctor_say(doctor, DOCTOR_BAD, "space", "set TMPDIR to a folder in which this user may make folders", "%s",
                   err.message);
    } else {
        record_folder_remove(folder);
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = 0; /* the one that stays */
        judge_space(doctor, folder);
    }
    if (record_folder_is_gone("."))
        doctor_say(doctor, DOCTOR_BAD, "output", "cd to a folder that is there",
                   "snapshot.bin cannot be written in this folder: it was deleted");
    else if (access(".", W_OK | X_OK))
        doctor_say(doctor, DOCTOR_BAD, "output", "record -o FILE, in a folder that may be written",
                   "snapshot.bin cannot be written in this folder: %s", strerror(errno));
}

void doctor_machine(struct doctor *doctor, bool is_sim)
{
    look_at_recorder(doctor, is_sim);
    look_at_driver(doctor, is_sim);
    look_at_space(doctor);
}
