/*
 * Symbols that a loaded object exports, found in its own tables: asks no dl function, allocates nothing, takes no lock.
 * For callbacks of dl_iterate_phdr, whose lock keeps the object where it is.
 */
#ifndef BASE_ELF_SYMBOLS_H
#define BASE_ELF_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct elf_symbols {
    ElfW(Addr) base;           /* what the loader added to the file's addresses */
    const ElfW(Sym) *symbols;
    const char *strings;
    const uint32_t *hashes;    /* DT_GNU_HASH */
    const ElfW(Dyn) *dynamic;
};

/* False: the object exports nothing that can be found by name. */
bool elf_symbols_of(const struct dl_phdr_info *info, struct elf_symbols *symbols);

/* The defined function (or object) of that name; NULL: none. */
const ElfW(Sym) *elf_symbol(const struct elf_symbols *symbols, const char *name);

/* Is this object linked with a library whose name (as in DT_NEEDED) is `name`? */
bool elf_needs(const struct elf_symbols *symbols, const char *name);

#endif
