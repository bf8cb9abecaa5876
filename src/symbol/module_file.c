/* Programs and libraries on disk.  Uses elfutils and src/base. */
#include "symbol/module_file.h"

#include "base/error.h"
#include "symbol/address_table.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct module_file {
    Dwfl *dwfl;
    Dwfl_Module *module;
    struct address_table symbols; /* items: elfutils' symbol numbers */
};

static int no_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)elf;
    return -1; /* the file is already open */
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = no_file,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

/* Looked at before opening: opening a device can have effects, opening a pipe can hang. */
static int open_regular(const char *path)
{
    struct stat info;
    if (path[0] != '/' || stat(path, &info) || !S_ISREG(info.st_mode))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &info) || !S_ISREG(info.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool has_build_id(int fd, const uint8_t *build_id, size_t length)
{
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    const void *found;
    bool same = false;
    if (elf && elf_kind(elf) == ELF_K_ELF) {
        ssize_t size = dwelf_elf_gnu_build_id(elf, &found);
        same = size > 0 && (size_t)size == length && memcmp(found, build_id, length) == 0;
    }
    elf_end(elf);
    return same;
}

static int read_symbols(struct module_file *module)
{
    int count = dwfl_module_getsymtab(module->module);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        GElf_Word section;
        const char *name = dwfl_module_getsym_info(module->module, i, &symbol, &address, &section, NULL, NULL);
        unsigned type = GELF_ST_TYPE(symbol.st_info), binding = GELF_ST_BIND(symbol.st_info);
        if (!name || !*name || section == SHN_UNDEF || section == SHN_ABS ||
            (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
            continue;
        uint32_t rank = (type == STT_NOTYPE ? 0 : 4) + (binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0);
        if (address_table_add(&module->symbols, address, symbol.st_size, (uint32_t)i, rank))
            return STATUS_NO_MEMORY;
    }
    address_table_sort(&module->symbols);
    return 0;
}

int module_file_open(const char *path, const uint8_t *build_id, size_t length, struct module_file **result)
{
    *result = NULL;
    if (!length || elf_version(EV_CURRENT) == EV_NONE)
        return STATUS_NOT_FOUND;
    int fd = open_regular(path);
    if (fd < 0 || !has_build_id(fd, build_id, length)) {
        if (fd >= 0)
            close(fd);
        return STATUS_NOT_FOUND;
    }
    struct module_file *module = calloc(1, sizeof(*module));
    int status = module ? 0 : STATUS_NO_MEMORY;
    if (module) {
        module->dwfl = dwfl_begin(&callbacks);
        if (module->dwfl) {
            dwfl_report_begin(module->dwfl);
            module->module = dwfl_report_elf(module->dwfl, path, path, fd, 0, false); /* takes fd over */
            dwfl_report_end(module->dwfl, NULL, NULL);
        }
        status = module->module ? read_symbols(module) : STATUS_NOT_FOUND;
    }
    if (!module || !module->module)
        close(fd);
    if (status) {
        module_file_close(module);
        return status;
    }
    *result = module;
    return 0;
}

void module_file_close(struct module_file *module)
{
    if (!module)
        return;
    if (module->dwfl)
        dwfl_end(module->dwfl);
    address_table_free(&module->symbols);
    free(module);
}

const char *module_file_symbol(struct module_file *module, uint64_t address)
{
    uint32_t item = address_table_find(&module->symbols, address);
    if (item == UINT32_MAX)
        return NULL;
    GElf_Sym symbol;
    GElf_Addr value;
    return dwfl_module_getsym_info(module->module, (int)item, &symbol, &value, NULL, NULL, NULL);
}

Dwarf *module_file_dwarf(struct module_file *module, uint64_t *bias)
{
    Dwarf_Addr offset = 0;
    Dwarf *dwarf = dwfl_module_getdwarf(module->module, &offset);
    *bias = offset;
    return dwarf;
}
