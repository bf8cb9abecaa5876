/*
 * A program or library on disk, opened to look addresses up: only a regular file whose build id is the recorded one.
 *
 * Holds elfutils' view of the file and of its separate debug information, and a sorted table of its symbols (elfutils'
 * own search is linear).  Texts belong to the module and live until it is closed.  Not thread safe.
 */
#ifndef SYMBOL_MODULE_FILE_H
#define SYMBOL_MODULE_FILE_H

#include <elfutils/libdwfl.h>
#include <stdint.h>

struct module_file;

/* 0, STATUS_NOT_FOUND (missing, no regular file, another build) or STATUS_NO_MEMORY. */
int module_file_open(const char *path, const uint8_t *build_id, size_t build_id_length, struct module_file **result);
void module_file_close(struct module_file *module);

/* The mangled name of the symbol at an address (as the file has addresses); NULL: none. */
const char *module_file_symbol(struct module_file *module, uint64_t address);

/* The file's debug information, or NULL; `bias` is to be added to its addresses to get the file's. */
Dwarf *module_file_dwarf(struct module_file *module, uint64_t *bias);

#endif
