/*
 * /tmp/perf-PID.map: names of code that was generated at run time, as JIT compilers write them for perf: lines of
 * "START SIZE NAME", numbers in hexadecimal.  Read only if it is a regular file that belongs to the user.
 */
#ifndef SYMBOL_PERF_MAP_H
#define SYMBOL_PERF_MAP_H

#include "symbol/address_table.h"

#include <stddef.h>
#include <stdint.h>

struct perf_map {
    char path[96];
    char *text;
    size_t *names;   /* offsets in text, by item of the table */
    size_t count, capacity;
    struct address_table table;
};

/* 0, STATUS_NOT_FOUND (no such file, or none that we may read) or STATUS_NO_MEMORY. */
int perf_map_open(struct perf_map *map, const char *folder, int64_t pid);
const char *perf_map_find(const struct perf_map *map, uint64_t address); /* NULL: nothing */
void perf_map_close(struct perf_map *map);

#endif
