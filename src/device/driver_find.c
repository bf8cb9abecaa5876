/*
 * Finding the driver's library as the dynamic linker would: library path, cache, default folders.  Plain files only,
 * nothing is loaded.  Uses base and the C library.
 */
#include "device/driver_find.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIND_MACHINE EM_X86_64
#define FIND_CACHE_FLAGS 0x0303 /* ELF, libc6, x86-64 */
#define FIND_TRIPLET "x86_64-linux-gnu"
#else
#define FIND_MACHINE EM_AARCH64
#define FIND_CACHE_FLAGS 0x0a03
#define FIND_TRIPLET "aarch64-linux-gnu"
#endif

#define FIND_CACHE "/etc/ld.so.cache"
#define FIND_CACHE_MAGIC "glibc-ld.so.cache1.1"

/* The cache's layout: a header, entries, strings; the words are the machine's own. */
struct cache_header {
    char magic[20];
    uint32_t count, string_bytes;
    uint32_t unused[5];
};

struct cache_entry {
    int32_t flags;
    uint32_t key, value; /* offsets of strings from the start of the header */
    uint32_t os_version;
    uint64_t hardware;
};

static const char *const find_folders[] = {
    "/lib/" FIND_TRIPLET, "/usr/lib/" FIND_TRIPLET, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/lib/wsl/lib",
};

bool driver_file_fits(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    struct stat facts;
    Elf64_Ehdr header;
    bool fits = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) &&
                read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header) &&
                memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                header.e_machine == FIND_MACHINE && header.e_type == ET_DYN;
    close(fd);
    return fits;
}

/* True if folder/libcuda.so.1 is there; path gets it, made absolute. */
static bool find_in_folder(const char *folder, size_t length, char *path, size_t size)
{
    char candidate[PATH_MAX];
    char current[PATH_MAX];
    int written;
    if (length > 0 && folder[0] == '/') {
        written = snprintf(candidate, sizeof(candidate), "%.*s/" DRIVER_LIBRARY, (int)length, folder);
    } else {
        if (!getcwd(current, sizeof(current)))
            return false;
        written = snprintf(candidate, sizeof(candidate), "%s/%.*s%s" DRIVER_LIBRARY, current, (int)length, folder,
                           length ? "/" : "");
    }
    if (written < 0 || (size_t)written >= sizeof(candidate) || (size_t)written >= size || !driver_file_fits(candidate))
        return false;
    memcpy(path, candidate, (size_t)written + 1);
    return true;
}

/* The folders of a library path stand between colons or semicolons; an empty one is the current folder. */
static bool find_in_path(const char *list, char *path, size_t size)
{
    while (list && *list) {
        size_t length = strcspn(list, ":;");
        if (length < PATH_MAX && find_in_folder(list, length, path, size))
            return true;
        list += length;
        if (*list)
            list++;
    }
    return false;
}

static const char *cache_string(const char *bytes, size_t length, uint32_t offset)
{
    if (offset >= length || !memchr(bytes + offset, 0, length - offset))
        return NULL;
    return bytes + offset;
}

static bool find_in_cache_bytes(const char *bytes, size_t length, char *path, size_t size)
{
    const struct cache_header *header = (const struct cache_header *)bytes;
    if (length < sizeof(*header) || memcmp(header->magic, FIND_CACHE_MAGIC, sizeof(header->magic)) != 0)
        return false;
    if (header->count > (length - sizeof(*header)) / sizeof(struct cache_entry))
        return false;
    const struct cache_entry *entries = (const struct cache_entry *)(bytes + sizeof(*header));
    for (uint32_t i = 0; i < header->count; i++) {
        if (entries[i].flags != FIND_CACHE_FLAGS)
            continue;
        const char *key = cache_string(bytes, length, entries[i].key);
        const char *value = cache_string(bytes, length, entries[i].value);
        if (!key || !value || strcmp(key, DRIVER_LIBRARY) != 0 || value[0] != '/' || strlen(value) >= size)
            continue;
        if (!driver_file_fits(value))
            continue;
        memcpy(path, value, strlen(value) + 1);
        return true;
    }
    return false;
}

static void *find_map(const char *path, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    struct stat facts;
    void *bytes = MAP_FAILED;
    if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
        *length = (size_t)facts.st_size;
        bytes = mmap(NULL, *length, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return bytes == MAP_FAILED ? NULL : bytes;
}

static bool find_in_cache(char *path, size_t size)
{
    size_t length = 0;
    void *bytes = find_map(FIND_CACHE, &length);
    if (!bytes)
        return false;
    bool found = find_in_cache_bytes(bytes, length, path, size);
    munmap(bytes, length);
    return found;
}

int driver_find(const char *library_path, char *path, size_t path_size, struct error *err)
{
    if (find_in_path(library_path, path, path_size) || find_in_cache(path, path_size))
        return STATUS_OK;
    for (size_t i = 0; i < sizeof(find_folders) / sizeof(find_folders[0]); i++)
        if (find_in_folder(find_folders[i], strlen(find_folders[i]), path, path_size))
            return STATUS_OK;
    return error_set(err, STATUS_NOT_FOUND,
                     "no " DRIVER_LIBRARY " in LD_LIBRARY_PATH, " FIND_CACHE " and the usual folders");
}

static bool range_fits(uint64_t offset, uint64_t bytes, size_t length)
{
    return offset <= length && bytes <= length - offset;
}

static const Elf64_Shdr *find_sections(const unsigned char *bytes, size_t length, size_t *count)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    if (length < sizeof(*header) || header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % 8 != 0 ||
        !range_fits(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), length))
        return NULL;
    *count = header->e_shnum;
    return (const Elf64_Shdr *)(bytes + header->e_shoff);
}

static bool symbol_is_export(const Elf64_Sym *symbol)
{
    unsigned binding = ELF64_ST_BIND(symbol->st_info);
    unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
    return symbol->st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK) &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED) &&
           ELF64_ST_TYPE(symbol->st_info) != STT_SECTION && symbol->st_shndx != SHN_ABS;
}

static bool exports_walk(const unsigned char *bytes, size_t length,
                         bool (*each)(const char *name, bool is_function, void *context), void *context)
{
    size_t count = 0;
    const Elf64_Shdr *sections = find_sections(bytes, length, &count);
    for (size_t i = 0; sections && i < count; i++) {
        const Elf64_Shdr *table = &sections[i];
        if (table->sh_type != SHT_DYNSYM || table->sh_link >= count || table->sh_offset % 8 != 0 ||
            !range_fits(table->sh_offset, table->sh_size, length))
            continue;
        const Elf64_Shdr *strings = &sections[table->sh_link];
        if (!range_fits(strings->sh_offset, strings->sh_size, length))
            return false;
        const char *names = (const char *)bytes + strings->sh_offset;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(bytes + table->sh_offset);
        for (size_t k = 1; k < table->sh_size / sizeof(*symbols); k++) {
            uint64_t name = symbols[k].st_name;
            if (!symbol_is_export(&symbols[k]) || name >= strings->sh_size ||
                !memchr(names + name, 0, strings->sh_size - name))
                continue;
            unsigned type = ELF64_ST_TYPE(symbols[k].st_info);
            if (!each(names + name, type == STT_FUNC || type == STT_GNU_IFUNC, context))
                return true;
        }
        return true;
    }
    return false;
}

int driver_exports(const char *path, bool (*each)(const char *name, bool is_function, void *context), void *context,
                   struct error *err)
{
    if (!driver_file_fits(path))
        return error_set(err, STATUS_INPUT, "%s: not a shared library for this machine", path);
    size_t length = 0;
    unsigned char *bytes = find_map(path, &length);
    if (!bytes)
        return error_set(err, STATUS_INPUT, "%s: cannot be read", path);
    bool read_all = exports_walk(bytes, length, each, context);
    munmap(bytes, length);
    return read_all ? STATUS_OK : error_set(err, STATUS_INPUT, "%s: its table of symbols cannot be read", path);
}
