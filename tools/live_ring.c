/* A running process's ring file.  Uses base and the layout in record/ring.h. */
#include "tools/live_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that a process has mapped. */
struct mapped {
    unsigned long long inode;
    char path[PATH_MAX];
};

/* One line of /proc/PID/maps; false: no ring file. */
static bool read_line(const char *line, struct mapped *mapped)
{
    int at = 0;
    if (sscanf(line, "%*x-%*x %*s %*x %*x:%*x %llu %n", &mapped->inode, &at) != 1 || !at)
        return false;
    size_t length = strcspn(line + at, "\n"), suffix = strlen(RING_SUFFIX);
    if (length < suffix || length >= sizeof(mapped->path) || memcmp(line + at + length - suffix, RING_SUFFIX, suffix) != 0)
        return false;
    memcpy(mapped->path, line + at, length);
    mapped->path[length] = 0;
    return mapped->path[0] == '/';
}

/* The number that the process has for itself: another one in a container. */
static int64_t own_number(int64_t pid)
{
    char path[64], line[512];
    int64_t number = pid;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        const char *last = strrchr(line, '\t');
        if (strncmp(line, "NSpid:", 6) == 0 && last)
            number = strtoll(last + 1, NULL, 10);
    }
    if (file)
        fclose(file);
    return number;
}

static int open_path(const char *path, const struct mapped *mapped)
{
    struct stat facts;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &facts) || facts.st_ino != mapped->inode)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

/* By the path, or by the process's own root. */
static int open_mapped(int64_t pid, const struct mapped *mapped, char **path)
{
    int fd = open_path(mapped->path, mapped);
    if (fd >= 0) {
        *path = strdup(mapped->path);
    } else if (asprintf(path, "/proc/%" PRId64 "/root%s", pid, mapped->path) < 0) {
        *path = NULL;
    } else {
        fd = open_path(*path, mapped);
    }
    if (fd >= 0 && !*path) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    return fd;
}

static int check_header(const struct ring_header *header, uint64_t size, int64_t number, struct error *err)
{
    if (memcmp(header->magic, RING_MAGIC, sizeof(header->magic)) != 0)
        return error_set(err, STATUS_INPUT, "what it writes is no ring file");
    if (header->major != RING_MAJOR)
        return error_set(err, STATUS_INPUT, "it is recorded by another version of cudamem: its ring file has version %u, "
                         "this program writes and reads version %u", header->major, RING_MAJOR);
    if (size < sizeof(*header) || header->header_size != sizeof(*header) || header->device_size != sizeof(struct ring_device) ||
        header->devices % 8 || header->devices > size ||
        size - header->devices < RING_DEVICES * sizeof(struct ring_device))
        return error_set(err, STATUS_INPUT, "its ring file has parts of an unknown size");
    if (!__atomic_load_n(&header->ready, __ATOMIC_ACQUIRE))
        return error_set(err, STATUS_INPUT, "its ring file is just being made; try again");
    if (header->pid != number)
        return error_set(err, STATUS_INPUT, "it is not being recorded yet: it was forked, and has made no CUDA call that "
                         "takes or gives memory");
    return STATUS_OK;
}

static int map_ring(int fd, int64_t number, struct live_ring *ring, struct error *err)
{
    struct stat facts;
    if (fstat(fd, &facts) || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & 077))
        return error_set(err, STATUS_INPUT, "its ring file is not a file of this user alone");
    uint64_t first = offsetof(struct ring_header, ready);
    ring->size = sizeof(struct ring_header) + RING_DEVICES * sizeof(struct ring_device);
    if ((uint64_t)facts.st_size < ring->size)
        ring->size = first; /* of an older version perhaps, which was shorter */
    if ((uint64_t)facts.st_size < ring->size)
        return error_set(err, STATUS_INPUT, "its ring file is cut off");
    ring->map = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring->map == MAP_FAILED) {
        ring->map = NULL;
        return error_set(err, STATUS_INPUT, "its ring file cannot be mapped: %s", strerror(errno));
    }
    ring->header = ring->map;
    int status = check_header(ring->map, ring->size, number, err);
    if (!status)
        ring->devices = (void *)((char *)ring->map + ring->header->devices);
    return status;
}

/* The newest of the files that are the process's: two copies of the recorder write one each. */
static int find_ring(int64_t pid, FILE *maps, struct live_ring *best, struct error *err)
{
    char line[PATH_MAX + 256], last[PATH_MAX] = "";
    struct mapped *mapped = malloc(sizeof(*mapped));
    bool any = false;
    if (!mapped)
        return error_no_memory(err);
    while (fgets(line, sizeof(line), maps)) {
        struct live_ring ring = {.pid = pid};
        if (!read_line(line, mapped) || strcmp(last, mapped->path) == 0)
            continue;
        snprintf(last, sizeof(last), "%s", mapped->path);
        int fd = open_mapped(pid, mapped, &ring.path);
        int status = fd < 0 ? error_set(err, STATUS_INPUT, "its ring file cannot be opened: %s", strerror(errno))
                            : map_ring(fd, own_number(pid), &ring, err);
        if (fd >= 0)
            close(fd);
        any = true;
        if (!status && (!best->header || ring.header->start_time > best->header->start_time)) {
            live_ring_close(best);
            *best = ring;
        } else {
            live_ring_close(&ring);
        }
    }
    free(mapped);
    if (!any)
        return error_set(err, STATUS_INPUT, "it is not being recorded, or has made no CUDA call yet that takes or gives "
                         "memory");
    return best->header ? STATUS_OK : STATUS_INPUT;
}

int live_ring_open(int64_t pid, struct live_ring *ring, struct error *err)
{
    char path[64];
    struct stat facts;
    memset(ring, 0, sizeof(*ring));
    snprintf(path, sizeof(path), "/proc/%" PRId64, pid);
    if (pid <= 0 || stat(path, &facts))
        return error_set(err, STATUS_INPUT, "there is no such process");
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/maps", pid);
    FILE *maps = facts.st_uid == geteuid() || geteuid() == 0 ? fopen(path, "re") : NULL;
    if (!maps && facts.st_uid != geteuid())
        return error_set(err, STATUS_INPUT, "it is a process of another user (%lu)", (unsigned long)facts.st_uid);
    if (!maps)
        return error_set(err, STATUS_INPUT, "it cannot be looked into: %s", strerror(errno));
    int status = find_ring(pid, maps, ring, err);
    fclose(maps);
    return status;
}

void live_ring_close(struct live_ring *ring)
{
    if (ring->map)
        munmap(ring->map, ring->size);
    free(ring->path);
    memset(ring, 0, sizeof(*ring));
}

bool live_ring_runs(const struct live_ring *ring)
{
    char path[64], line[PATH_MAX + 256];
    struct mapped *mapped = malloc(sizeof(*mapped));
    struct stat facts;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/maps", ring->pid);
    FILE *maps = mapped && stat(ring->path, &facts) == 0 ? fopen(path, "re") : NULL;
    bool found = false;
    while (maps && !found && fgets(line, sizeof(line), maps))
        found = read_line(line, mapped) && mapped->inode == facts.st_ino;
    if (maps)
        fclose(maps);
    free(mapped);
    return found;
}
