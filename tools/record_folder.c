/* The private folder of one recording.  Uses base and the C library. */
#include "tools/record_folder.h"

#include "base/array.h"
#include "record/ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FOLDER_TMPFS 0x01021994
#define FOLDER_RAMFS 0x858458f6

static bool folder_is_ours(const char *path)
{
    struct stat facts;
    if (mkdir(path, 0700) && errno != EEXIST)
        return false;
    if (lstat(path, &facts))
        return false;
    if (!S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & 077)) {
        errno = EPERM;
        return false;
    }
    return true;
}

static bool folder_is_in_memory(const char *path)
{
    struct statfs facts;
    return statfs(path, &facts) == 0 &&
           ((unsigned long)facts.f_type == FOLDER_TMPFS || (unsigned long)facts.f_type == FOLDER_RAMFS);
}

static bool make_in(const char *place, bool in_memory, char *path, size_t size)
{
    char base[PATH_MAX];
    if (!place || place[0] != '/')
        return false;
    int length = snprintf(base, sizeof(base), "%s/cudamem-%u", place, (unsigned)geteuid());
    if (length < 0 || (size_t)length >= sizeof(base) || !folder_is_ours(base) ||
        (!in_memory && folder_is_in_memory(base)))
        return false;
    length = snprintf(path, size, "%s/" RECORD_FOLDER_PREFIX "%ld-XXXXXX", base, (long)getpid());
    return length > 0 && (size_t)length < size && mkdtemp(path) != NULL;
}

int record_folder_make(char *path, size_t size, struct error *err)
{
    const char *places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", getenv("XDG_RUNTIME_DIR"), "/dev/shm"};
    for (int in_memory = 0; in_memory < 2; in_memory++)
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
            if (make_in(places[i], in_memory, path, size))
                return STATUS_OK;
    return error_set(err, STATUS_OUTPUT,
                     "no private folder for the recording can be made in TMPDIR, /tmp or /var/tmp: %s",
                     strerror(errno));
}

/* What a ring file is a copy for, by its name. */
static uint32_t copy_of(const char *name, uint32_t *number)
{
    static const char *const words[RING_COPIES] = {NULL, RING_COPY_OOM_WORD, RING_COPY_SIGNAL_WORD};
    for (uint32_t copy = RING_COPY_OOM; copy < RING_COPIES; copy++) {
        const char *word = strstr(name, words[copy]);
        char *end = NULL;
        unsigned long found = word ? strtoul(word + strlen(words[copy]), &end, 10) : 0;
        if (!found || found > UINT32_MAX || strncmp(end, RING_SUFFIX, strlen(RING_SUFFIX)) != 0)
            continue;
        if (number)
            *number = (uint32_t)found;
        return copy;
    }
    return RING_COPY_NONE;
}

/* Of the processes, which all have ended, or are left alone. */
static void remove_marks(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *item;
    while (folder && (item = readdir(folder))) {
        size_t length = strlen(item->d_name);
        bool is_ring = length > strlen(RING_SUFFIX) && strstr(item->d_name, RING_SUFFIX);
        bool is_begun = is_ring && strstr(item->d_name, RING_SUFFIX RING_UNFINISHED) && copy_of(item->d_name, NULL);
        if (item->d_name[0] != '.' && (!is_ring || is_begun))
            unlinkat(dirfd(folder), item->d_name, 0);
    }
    if (folder)
        closedir(folder);
}

void record_folder_remove(const char *path)
{
    remove_marks(path);
    rmdir(path);
}

/* A process that is only waited for counts as dead: it writes no more. */
static bool is_alive(int64_t pid)
{
    char path[64], text[512];
    if (pid <= 0 || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
        return false;
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return errno != ENOENT;
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = 0;
    const char *state = strrchr(text, ')');
    return !(state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X'));
}

static bool name_has(const char *name, const char *before, const char *after, int64_t *pid)
{
    size_t length = strlen(name), prefix = strlen(before), suffix = strlen(after);
    if (length < prefix + suffix || strncmp(name, before, prefix) != 0 || strcmp(name + length - suffix, after) != 0)
        return false;
    char *end;
    long long number = strtoll(name + prefix, &end, 10);
    if (end == name + prefix || number <= 0)
        return false;
    *pid = number;
    return true;
}

static int compare_files(const void *left, const void *right)
{
    const struct record_file *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return strcmp(a->path, b->path);
}

static int list(const char *path, const char *before, const char *after, bool copies, struct record_file **files,
                size_t *count, struct error *err)
{
    size_t capacity = 0;
    *files = NULL;
    *count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return error_set(err, STATUS_INPUT, "%s: %s", path, strerror(errno));
    int status = STATUS_OK;
    for (struct dirent *item; status == STATUS_OK && (item = readdir(folder));) {
        int64_t pid = 0;
        uint32_t number = 0, copy = copy_of(item->d_name, &number);
        if (!name_has(item->d_name, before, after, &pid) || copies != (copy != RING_COPY_NONE))
            continue;
        char *full = NULL;
        if (asprintf(&full, "%s/%s", path, item->d_name) < 0 ||
            array_reserve(files, &capacity, *count + 1, sizeof(**files))) {
            free(full);
            status = error_no_memory(err);
            break;
        }
        (*files)[(*count)++] = (struct record_file){full, pid, is_alive(pid), copy, number};
    }
    closedir(folder);
    if (*count)
        qsort(*files, *count, sizeof(**files), compare_files);
    return status;
}

int record_folder_rings(const char *folder, struct record_file **files, size_t *count, struct error *err)
{
    return list(folder, "cudamem-", RING_SUFFIX, false, files, count, err);
}

int record_folder_copies(const char *folder, struct record_file **files, size_t *count, struct error *err)
{
    return list(folder, "cudamem-", RING_SUFFIX, true, files, count, err);
}

int record_folder_marks(const char *folder, const char *word, struct record_file **files, size_t *count,
                        struct error *err)
{
    char before[64];
    snprintf(before, sizeof(before), "%s.", word);
    return list(folder, before, "", false, files, count, err);
}

void record_files_free(struct record_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(files[i].path);
    free(files);
}

bool record_folder_is_gone(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_nlink == 0;
}
