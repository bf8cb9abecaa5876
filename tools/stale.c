/* Looking for left-over ring files where the recorder puts them.  Uses base/array and the layout in record/ring.h. */
#include "tools/stale.h"

#include "base/array.h"
#include "record/ring.h"
#include "tools/record_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct stale_found {
    struct stale *items;
    size_t count, capacity;
    bool no_memory;
};

static bool stale_is_name(const char *name)
{
    static const char *const ends[] = {RING_SUFFIX, RING_SUFFIX RING_UNFINISHED};
    size_t length = strlen(name);
    for (size_t i = 0; i < 2; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strcmp(name + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* When a process started, in nanoseconds since the epoch; 0 if there is none. */
static int64_t stale_process_start(int64_t pid)
{
    char path[64], line[1024];
    unsigned long long ticks = 0, boot = 0;
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const char *rest = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL; /* names may hold anything */
    fclose(file);
    if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                        &ticks) != 1)
        return 1;
    file = fopen("/proc/stat", "re");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "btime %llu", &boot) != 1)
        ;
    if (file)
        fclose(file);
    long rate = sysconf(_SC_CLK_TCK);
    return (int64_t)((boot + ticks / (unsigned long)(rate > 0 ? rate : 100)) * 1000000000u);
}

/* Does the process that made the file at `start` still run?  A later one may have got its number. */
static bool stale_runs(int64_t pid, int64_t start)
{
    if (pid <= 0 || pid > INT_MAX || (kill((pid_t)pid, 0) && errno == ESRCH))
        return false;
    int64_t process = stale_process_start(pid);
    return process == 1 || (process && process <= start + INT64_C(2000000000));
}

/* Is it a cudamem that will make a snapshot of the file? */
static bool stale_is_recorder(int64_t pid)
{
    char path[64], name[32] = {0};
    snprintf(path, sizeof(path), "/proc/%lld/comm", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is = fgets(name, sizeof(name), file) && strncmp(name, "cudamem", 7) == 0;
    fclose(file);
    return is;
}

/* recorder: the command in whose folder it is, 0 if it is in none. */
static void stale_header(int fd, int64_t recorder, struct stale *item)
{
    struct ring_header *header = malloc(sizeof(*header));
    ssize_t got = header ? pread(fd, header, sizeof(*header), 0) : -1;
    int64_t start = INT64_MAX / 2;
    if (got == (ssize_t)sizeof(*header) && memcmp(header->magic, RING_MAGIC, sizeof(header->magic)) == 0) {
        item->pid = header->pid;
        item->is_copy = header->copy != RING_COPY_NONE;
        start = header->start_time;
        memcpy(item->program, header->program, sizeof(item->program));
        item->program[sizeof(item->program) - 1] = '\0';
        item->runs = stale_runs(item->pid, start);
        item->in_use = item->runs || stale_is_recorder(header->parent);
    } else {
        /* Not even begun: its name tells the process. */
        const char *name = strrchr(item->path, '/') + 1;
        long long pid = 0;
        if (sscanf(name, "cudamem-%lld-", &pid) == 1)
            item->pid = pid;
        item->runs = item->in_use = stale_runs(item->pid, item->modified * 1000);
    }
    item->in_use |= recorder && stale_is_recorder(recorder);
    free(header);
}

static void stale_add(int folder, const char *folder_path, const char *name, int64_t recorder,
                      struct stale_found *found)
{
    struct stat about;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid()) {
        struct stale item = {.size = (uint64_t)about.st_blocks * 512,
                             .modified = about.st_mtim.tv_sec * INT64_C(1000000) + about.st_mtim.tv_nsec / 1000};
        if (asprintf(&item.path, "%s/%s", folder_path, name) < 0 ||
            array_reserve(&found->items, &found->capacity, found->count + 1, sizeof(*found->items))) {
            found->no_memory = true;
        } else {
            stale_header(fd, recorder, &item);
            found->items[found->count++] = item;
        }
    }
    close(fd);
}

/* A folder of ours, and the folders in it. */
static void stale_folder(const char *path, int depth, struct stale_found *found)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    long long recorder = 0;
    const char *slash = strrchr(path, '/');
    if (!slash || sscanf(slash, "/" RECORD_FOLDER_PREFIX "%lld-", &recorder) != 1)
        recorder = 0;
    DIR *listing = fstat(fd, &about) == 0 && about.st_uid == geteuid() ? fdopendir(fd) : NULL;
    if (!listing) {
        close(fd);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(listing))) {
        if (stale_is_name(entry->d_name)) {
            stale_add(fd, path, entry->d_name, recorder, found);
        } else if (entry->d_name[0] != '.' && depth) {
            char *inner;
            if (asprintf(&inner, "%s/%s", path, entry->d_name) < 0)
                continue;
            stale_folder(inner, depth - 1, found);
            free(inner);
        }
    }
    closedir(listing);
}

static int stale_compare(const void *a, const void *b)
{
    return strcmp(((const struct stale *)a)->path, ((const struct stale *)b)->path);
}

int stale_list(struct stale **list, size_t *count, struct error *err)
{
    struct stale_found found = {0};
    const char *own = secure_getenv("CUDAMEM_RING_FOLDER");
    const char *places[] = {secure_getenv("TMPDIR"), "/tmp", "/var/tmp", secure_getenv("XDG_RUNTIME_DIR"), "/dev/shm"};
    if (own && own[0] == '/')
        stale_folder(own, 1, &found);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char path[PATH_MAX];
        if (!places[i] || places[i][0] != '/')
            continue;
        int length = snprintf(path, sizeof(path), "%s/cudamem-%u", places[i], (unsigned)geteuid());
        if (length > 0 && (size_t)length < sizeof(path))
            stale_folder(path, 1, &found);
    }
    if (found.no_memory) {
        stale_free(found.items, found.count);
        return error_no_memory(err);
    }
    if (found.count)
        qsort(found.items, found.count, sizeof(*found.items), stale_compare);
    size_t kept = 0; /* TMPDIR may be /tmp: the same file twice */
    for (size_t i = 0; i < found.count; i++) {
        if (kept && strcmp(found.items[kept - 1].path, found.items[i].path) == 0)
            free(found.items[i].path);
        else
            found.items[kept++] = found.items[i];
    }
    *list = found.items;
    *count = kept;
    return STATUS_OK;
}

void stale_free(struct stale *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].path);
    free(list);
}
