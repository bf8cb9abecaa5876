/*
 * The interpreter among the loaded objects: the first that exports its function for the thread's state, whatever scope
 * it was loaded into.  Uses base; asks no dl function but dl_iterate_phdr, as modules.c does and for its reasons.
 */
#include "record/python.h"

#include "base/elf_symbols.h"

#include <string.h>

struct search {
    struct python_symbols *found;
    struct elf_symbols program; /* the first object */
    bool has_program, is_first;
};

static uint64_t address_of(const struct elf_symbols *symbols, const char *name)
{
    const ElfW(Sym) *symbol = elf_symbol(symbols, name);
    return symbol ? symbols->base + symbol->st_value : 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void take_symbols(const struct elf_symbols *symbols, uint64_t state_function, struct python_symbols *found)
{
    void *function = (void *)(uintptr_t)state_function;
    memcpy(&found->thread_state, &function, sizeof(function)); /* an object pointer becomes a function's */
    found->runtime = address_of(symbols, "_PyRuntime");
    found->code_type = address_of(symbols, "PyCode_Type");
    const void *version = (const void *)(uintptr_t)address_of(symbols, "Py_Version");
    if (version)
        memcpy(&found->version, version, sizeof(found->version));
    const ElfW(Sym) *loop = elf_symbol(symbols, "_PyEval_EvalFrameDefault");
    if (loop) {
        found->loop = symbols->base + loop->st_value;
        found->loop_size = loop->st_size;
    }
    found->is_3_9 = address_of(symbols, "PyObject_CallNoArgs");
    found->is_3_10 = address_of(symbols, "Py_NewRef");
    found->counts_references = address_of(symbols, "_Py_NegativeRefcount") || address_of(symbols, "_Py_RefTotal");
}

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *search = data;
    struct elf_symbols symbols;
    (void)size;
    bool is_program = search->is_first;
    search->is_first = false;
    if (!elf_symbols_of(info, &symbols))
        return 0;
    if (is_program) {
        search->program = symbols;
        search->has_program = true;
    }
    uint64_t function = address_of(&symbols, "PyGILState_GetThisThreadState");
    if (!function)
        return 0;
    take_symbols(&symbols, function, search->found);
    search->found->is_lasting =
        is_program || (search->has_program && elf_needs(&search->program, base_name(info->dlpi_name)));
    return 1;
}

void python_find(struct python_symbols *symbols)
{
    struct search search = {.found = symbols, .is_first = true};
    memset(symbols, 0, sizeof(*symbols));
    dl_iterate_phdr(look, &search);
}
