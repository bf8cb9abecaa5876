/*
 * Look-up in the tables of a loaded object.  Uses its bytes only.
 */
#include "base/elf_symbols.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

bool elf_symbols_of(const struct dl_phdr_info *info, struct elf_symbols *symbols)
{
    *symbols = (struct elf_symbols){.base = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            symbols->dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (const ElfW(Dyn) *item = symbols->dynamic; item && item->d_tag != DT_NULL; item++) {
        const void *address = (const void *)item->d_un.d_ptr;
        if (item->d_tag != DT_SYMTAB && item->d_tag != DT_STRTAB && item->d_tag != DT_GNU_HASH)
            continue;
        if (item->d_un.d_ptr < info->dlpi_addr) /* the vdso's are not relocated */
            return false;
        if (item->d_tag == DT_SYMTAB)
            symbols->symbols = address;
        else if (item->d_tag == DT_STRTAB)
            symbols->strings = address;
        else
            symbols->hashes = address;
    }
    return symbols->symbols && symbols->strings && symbols->hashes;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (const char *at = name; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    return hash;
}

/* Layout: bucket count, first hashed symbol, words of the filter, its shift; the filter; buckets; a hash a symbol, whose
 * lowest bit ends the bucket. */
const ElfW(Sym) *elf_symbol(const struct elf_symbols *symbols, const char *name)
{
    const unsigned word_bits = sizeof(ElfW(Addr)) * 8;
    const uint32_t *hashes = symbols->hashes;
    uint32_t hash = hash_of(name), buckets_count = hashes[0], first = hashes[1], words = hashes[2], shift = hashes[3];
    const ElfW(Addr) *filter = (const void *)(hashes + 4);
    const uint32_t *buckets = hashes + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = buckets + buckets_count;
    if (!buckets_count || !words)
        return NULL;
    ElfW(Addr) bits = filter[hash / word_bits % words];
    if (!(bits >> hash % word_bits & bits >> (hash >> shift) % word_bits & 1))
        return NULL;
    uint32_t i = buckets[hash % buckets_count];
    if (i < first || i == 0)
        return NULL;
    for (;; i++) {
        const ElfW(Sym) *symbol = &symbols->symbols[i];
        unsigned type = symbol->st_info & 0xf;
        if ((chain[i - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            (type == STT_FUNC || type == STT_OBJECT) && strcmp(symbols->strings + symbol->st_name, name) == 0)
            return symbol;
        if (chain[i - first] & 1)
            return NULL;
    }
}

bool elf_needs(const struct elf_symbols *symbols, const char *name)
{
    for (const ElfW(Dyn) *item = symbols->dynamic; item && item->d_tag != DT_NULL; item++)
        if (item->d_tag == DT_NEEDED && strcmp(symbols->strings + item->d_un.d_val, name) == 0)
            return true;
    return false;
}
