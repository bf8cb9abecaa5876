/* PyTorch's history beside a ring file.  Uses format, snapshot and base. */
#include "tools/torch_history.h"

#include "format/format.h"
#include "format/join.h"
#include "tools/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HISTORY_SUFFIX ".torch"
#define HISTORY_PART ".torch.new"
#define HISTORY_PATIENCE 15000000000 /* nanoseconds for an answer: a long trace takes a while to write */

static bool path_of(const char *ring, int64_t pid, const char *word, char path[PATH_MAX])
{
    const char *slash = strrchr(ring, '/');
    int folder = slash ? (int)(slash - ring) : 1;
    int length = snprintf(path, PATH_MAX, "%.*s/%" PRId64 ".%s%s", folder, slash ? ring : ".", pid, word, HISTORY_SUFFIX);
    return length > 0 && length < PATH_MAX;
}

bool torch_history_is_there(const char *ring, int64_t pid, const char *word)
{
    char path[PATH_MAX];
    struct stat facts;
    return path_of(ring, pid, word, path) && lstat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

bool torch_history_is_on(const char *ring, int64_t pid)
{
    return torch_history_is_there(ring, pid, "on");
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

bool torch_history_ask(const char *ring, int64_t pid)
{
    char asked[PATH_MAX], answer[PATH_MAX];
    const struct timespec pause = {0, 50000000};
    if (!path_of(ring, pid, "asked", asked) || !path_of(ring, pid, "now", answer))
        return false;
    unlink(answer);
    int fd = open(asked, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    int64_t end = now() + HISTORY_PATIENCE;
    while (!torch_history_is_there(ring, pid, "now") && now() < end && (kill((pid_t)pid, 0) == 0 || errno == EPERM))
        nanosleep(&pause, NULL);
    unlink(asked);
    return torch_history_is_there(ring, pid, "now");
}

bool torch_history_join(const char *ring, int64_t pid, const char *word, struct snapshot **snapshot)
{
    char path[PATH_MAX];
    struct snapshot *history = NULL, *both = NULL;
    struct error err = {0};
    if (!torch_history_is_there(ring, pid, word) || !path_of(ring, pid, word, path))
        return false;
    int status = format_read(path, NULL, &history, &err);
    if (!status)
        status = join_history(*snapshot, history, &both, &err);
    snapshot_free(history);
    if (status) {
        command_error(path, &err);
        command_note("PyTorch's history of process %" PRId64 " is left out", pid);
        return true;
    }
    snapshot_free(*snapshot);
    *snapshot = both;
    unlink(path);
    return true;
}

void torch_history_explain(const char *ring, int64_t pid, bool has_blocks)
{
    char path[PATH_MAX], reason[400] = "";
    if (torch_history_is_there(ring, pid, "failed") && path_of(ring, pid, "failed", path)) {
        int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        ssize_t length = fd < 0 ? -1 : read(fd, reason, sizeof(reason) - 1);
        reason[length < 0 ? 0 : length] = 0;
        reason[strcspn(reason, "\n")] = 0;
        if (fd >= 0)
            close(fd);
        struct error err = {0};
        error_set(&err, STATUS_INPUT, "PyTorch keeps no history of process %" PRId64 ": %s", pid, reason);
        command_error(NULL, &err);
    } else if (torch_history_is_on(ring, pid)) {
        command_note("PyTorch's history of process %" PRId64 " is not there: it ended without Python's own end (a signal, "
                     "os._exit)", pid);
    } else if (has_blocks) {
        command_note("PyTorch's history of process %" PRId64 " was not begun: Python looks for no sitecustomize with -I, -E or "
                     "-S", pid);
    }
}

void torch_history_clean(const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name), suffix = strlen(HISTORY_SUFFIX), part = strlen(HISTORY_PART);
        if ((length > suffix && !strcmp(entry->d_name + length - suffix, HISTORY_SUFFIX)) ||
            (length > part && !strcmp(entry->d_name + length - part, HISTORY_PART)))
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries)
        closedir(entries);
}
