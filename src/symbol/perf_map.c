/* perf's maps of generated code.  Uses src/base. */
#include "symbol/perf_map.h"

#include "base/array.h"
#include "base/error.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERF_MAP_LIMIT (64 << 20) /* bytes */

static int read_text(int fd, char **text)
{
    struct stat info;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_uid != geteuid() || info.st_size > PERF_MAP_LIMIT)
        return STATUS_NOT_FOUND;
    size_t size = (size_t)info.st_size, done = 0;
    *text = malloc(size + 1);
    if (!*text)
        return STATUS_NO_MEMORY;
    while (done < size) {
        ssize_t got = read(fd, *text + done, size - done);
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    (*text)[done] = '\0';
    return 0;
}

static int add_line(struct perf_map *map, char *line)
{
    char *end;
    uint64_t start = strtoull(line, &end, 16);
    if (end == line || *end != ' ')
        return 0;
    char *number = end + 1;
    uint64_t size = strtoull(number, &end, 16);
    if (end == number || *end != ' ' || !end[1])
        return 0;
    if (array_reserve(&map->names, &map->capacity, map->count + 1, sizeof(*map->names)))
        return STATUS_NO_MEMORY;
    map->names[map->count] = (size_t)(end + 1 - map->text);
    uint32_t item = (uint32_t)map->count++;
    return address_table_add(&map->table, start, size, item, item); /* a later line replaces an earlier one */
}

int perf_map_open(struct perf_map *map, const char *folder, int64_t pid)
{
    *map = (struct perf_map){0};
    int length = snprintf(map->path, sizeof(map->path), "%s/perf-%" PRId64 ".map", folder, pid);
    if (length < 0 || (size_t)length >= sizeof(map->path))
        return STATUS_NOT_FOUND;
    int fd = open(map->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return STATUS_NOT_FOUND;
    int status = read_text(fd, &map->text);
    close(fd);
    for (char *line = map->text, *next; !status && line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        status = add_line(map, line);
    }
    address_table_sort(&map->table);
    if (status)
        perf_map_close(map);
    return status;
}

const char *perf_map_find(const struct perf_map *map, uint64_t address)
{
    uint32_t item = address_table_find(&map->table, address);
    return item == UINT32_MAX ? NULL : map->text + map->names[item];
}

void perf_map_close(struct perf_map *map)
{
    free(map->text);
    free(map->names);
    address_table_free(&map->table);
    *map = (struct perf_map){0};
}
