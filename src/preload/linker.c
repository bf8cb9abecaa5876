/*
 * The dynamic linker as it is without us.  Uses base and the C library.
 */
#include "preload/linker.h"

#include "base/elf_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

typedef void *dlsym_function(void *handle, const char *name);

/* Where the assembly of dlsym jumps to. */
extern dlsym_function *preload_next_dlsym;
__attribute__((visibility("hidden"))) dlsym_function *preload_next_dlsym;

static dlsym_function *linker_dlsym;
typedef int dlclose_function(void *handle);
static dlclose_function *linker_dlclose;
static struct link_map *linker_self, *linker_forward;
static atomic_bool linker_started;

static const char *path_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

/* The table of an object's dynamic strings.  The vdso's is not relocated; nothing below its load address can be a
 * pointer. */
static const char *map_strings(const struct link_map *map)
{
    for (const ElfW(Dyn) *item = map->l_ld; item && item->d_tag != DT_NULL; item++)
        if (item->d_tag == DT_STRTAB)
            return item->d_un.d_ptr >= map->l_addr ? (const char *)item->d_un.d_ptr : NULL;
    return NULL;
}

/* Has the object this name as SONAME (or among those that it needs)? */
static bool map_has(const struct link_map *map, ElfW(Sxword) tag, const char *name)
{
    const char *strings = map_strings(map);
    for (const ElfW(Dyn) *item = map->l_ld; strings && item->d_tag != DT_NULL; item++)
        if (item->d_tag == tag && strcmp(strings + item->d_un.d_val, name) == 0)
            return true;
    return false;
}

static enum linker_object map_kind(const struct link_map *map)
{
    if (map == linker_self)
        return LINKER_OURS;
    const char *name = path_name(map->l_name);
    if (strcmp(name, LINKER_FORWARDER) == 0)
        return LINKER_FORWARD;
    if (strncmp(name, "libcuda.so", 10) == 0 || map_has(map, DT_SONAME, "libcuda.so.1"))
        return LINKER_DRIVER;
    return LINKER_OTHER;
}

static struct link_map *map_of(const void *address)
{
    Dl_info info;
    void *map = NULL;
    return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : NULL;
}

static struct link_map *first_map(void)
{
    struct link_map *map = linker_self;
    while (map && map->l_prev)
        map = map->l_prev;
    return map;
}

bool linker_driver_needed(void)
{
    for (struct link_map *map = first_map(); map; map = map->l_next)
        if (map_has(map, DT_NEEDED, "libcuda.so.1"))
            return true;
    return false;
}

static void find_forwarder(void)
{
    for (struct link_map *map = first_map(); map; map = map->l_next)
        if (strcmp(path_name(map->l_name), LINKER_FORWARDER) == 0)
            linker_forward = map;
}

void linker_start(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    if (atomic_load_explicit(&linker_started, memory_order_acquire))
        return;
    /* every thread that comes here at once finds the same; nobody waits */
    dlsym_function *found = NULL;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]) && !found; i++)
        found = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    dlsym_function *next = found ? (dlsym_function *)found(RTLD_NEXT, "dlsym") : NULL;
    linker_dlsym = found;
    linker_dlclose = found ? (dlclose_function *)found(RTLD_NEXT, "dlclose") : NULL;
    preload_next_dlsym = next ? next : found;
    linker_self = map_of(&linker_started);
    find_forwarder();
    atomic_store_explicit(&linker_started, true, memory_order_release);
}

int linker_close(void *handle)
{
    return linker_dlclose ? linker_dlclose(handle) : -1;
}

void *linker_symbol(void *handle, const char *name)
{
    return linker_dlsym ? linker_dlsym(handle, name) : NULL;
}

enum linker_object linker_object_of(const void *address, void **handle, const char **path)
{
    struct link_map *map = map_of(address);
    if (handle)
        *handle = map;
    if (path)
        *path = map ? map->l_name : NULL;
    return map ? map_kind(map) : LINKER_OTHER;
}

void *linker_forwarder(void)
{
    return linker_forward;
}

static int driver_is_mapped(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    bool *mapped = context;
    const char *name = path_name(info->dlpi_name);
    if (strncmp(name, "libcuda.so", 10) == 0)
        *mapped = true;
    return *mapped;
}

bool linker_driver_mapped(void)
{
    bool mapped = false;
    dl_iterate_phdr(driver_is_mapped, &mapped);
    return mapped;
}

/* --- the next definition of a function ---------------------------------------------------------------------------- */

struct definition_search {
    const char *name;
    bool is_after; /* our own library was passed */
    void *found;
};

static int look_for_definition(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct definition_search *search = context;
    struct elf_symbols table;
    if (info->dlpi_addr == linker_self->l_addr) {
        search->is_after = true;
        return 0;
    }
    if (!search->is_after || !elf_symbols_of(info, &table))
        return 0;
    const ElfW(Sym) *symbol = elf_symbol(&table, search->name);
    search->found = symbol ? (void *)(info->dlpi_addr + symbol->st_value) : NULL;
    return symbol != NULL;
}

void *linker_next_definition(const char *name)
{
    struct definition_search search = {.name = name};
    linker_start();
    if (linker_self)
        dl_iterate_phdr(look_for_definition, &search);
    return search.found;
}
