/*
 * What debug information says about an address: file and line, and the chain of functions that the compiler inlined
 * there.  Indexes compilation units when made, and the functions of a unit when an address in it is first asked for.
 *
 * Borrows the Dwarf; texts live as long as that.  Not thread safe.
 */
#ifndef SYMBOL_DEBUG_LINES_H
#define SYMBOL_DEBUG_LINES_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUG_CHAIN 64 /* functions inlined into one another at most */

struct debug_function {
    const char *linkage; /* mangled name, or NULL */
    const char *name;    /* or NULL */
    const char *file;    /* or NULL */
    int line;
};

struct debug_lines;

struct debug_lines *debug_lines_new(Dwarf *dwarf); /* NULL: no memory */
void debug_lines_free(struct debug_lines *lines);

/* Innermost first; the last one is the function that has code of its own.  How many were filled in; 0: nothing known.
 * STATUS_NO_MEMORY. */
int debug_lines_find(struct debug_lines *lines, uint64_t address, struct debug_function chain[DEBUG_CHAIN]);

#endif
