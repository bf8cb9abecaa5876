/* Files, lines and inlined functions.  Uses elfutils and src/base. */
#include "symbol/debug_lines.h"

#include "base/array.h"
#include "base/error.h"
#include "symbol/address_table.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>

#define NESTING 64 /* of namespaces and classes */

struct unit {
    Dwarf_Die die;      /* has the line table */
    Dwarf_Die contents; /* has the functions: another one if they are in a file of their own */
    bool is_indexed;
    struct address_table functions;
    Dwarf_Die *dies;
    size_t count, capacity;
};

struct debug_lines {
    struct unit *units;
    size_t count, capacity;
    struct address_table table;
};

static int add_ranges(Dwarf_Die *die, struct address_table *table, uint32_t item)
{
    ptrdiff_t at = 0;
    Dwarf_Addr base, start, end;
    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
        if (end > start && address_table_add(table, start, end - start, item, 0))
            return STATUS_NO_MEMORY;
    return 0;
}

static int read_units(struct debug_lines *lines, Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Half version;
    uint8_t type;
    Dwarf_Die die, sub;
    while (dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, &sub) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        if (lines->count >= UINT32_MAX ||
            array_reserve(&lines->units, &lines->capacity, lines->count + 1, sizeof(*lines->units)))
            return STATUS_NO_MEMORY;
        bool is_split = type == DW_UT_skeleton && dwarf_tag(&sub) == DW_TAG_compile_unit;
        lines->units[lines->count] = (struct unit){.die = die, .contents = is_split ? sub : die};
        if (add_ranges(&die, &lines->table, (uint32_t)lines->count++))
            return STATUS_NO_MEMORY;
    }
    address_table_sort(&lines->table);
    return 0;
}

struct debug_lines *debug_lines_new(Dwarf *dwarf)
{
    struct debug_lines *lines = calloc(1, sizeof(*lines));
    if (lines && read_units(lines, dwarf)) {
        debug_lines_free(lines);
        return NULL;
    }
    return lines;
}

void debug_lines_free(struct debug_lines *lines)
{
    if (!lines)
        return;
    for (size_t i = 0; i < lines->count; i++) {
        address_table_free(&lines->units[i].functions);
        free(lines->units[i].dies);
    }
    free(lines->units);
    address_table_free(&lines->table);
    free(lines);
}

/* All functions with code under a die, through namespaces and classes. */
static int index_functions(struct unit *unit, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > NESTING || dwarf_child(parent, &die))
        return 0;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram) {
            if (array_reserve(&unit->dies, &unit->capacity, unit->count + 1, sizeof(*unit->dies)))
                return STATUS_NO_MEMORY;
            size_t before = unit->functions.count;
            if (add_ranges(&die, &unit->functions, (uint32_t)unit->count))
                return STATUS_NO_MEMORY;
            if (unit->functions.count > before)
                unit->dies[unit->count++] = die;
        } else if (tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
                   tag == DW_TAG_union_type || tag == DW_TAG_module) {
            if (index_functions(unit, &die, depth + 1))
                return STATUS_NO_MEMORY;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

static const char *string_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static void set_names(Dwarf_Die *die, struct debug_function *function)
{
    function->linkage = string_attribute(die, DW_AT_linkage_name);
    if (!function->linkage)
        function->linkage = string_attribute(die, DW_AT_MIPS_linkage_name);
    function->name = string_attribute(die, DW_AT_name);
}

/* Where an inlined function was called: a line of the function around it. */
static void set_call(struct unit *unit, Dwarf_Die *inlined, struct debug_function *around)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    Dwarf_Files *files;
    size_t count;
    if (dwarf_attr(inlined, DW_AT_call_line, &attribute) && dwarf_formudata(&attribute, &number) == 0)
        around->line = (int)number;
    if (dwarf_attr(inlined, DW_AT_call_file, &attribute) && dwarf_formudata(&attribute, &number) == 0 &&
        dwarf_getsrcfiles(&unit->die, &files, &count) == 0 && number < count)
        around->file = dwarf_filesrc(files, number, NULL, NULL);
}

static bool has_code_inside(int tag)
{
    return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
           tag == DW_TAG_catch_block;
}

/* The child of a die that holds the address; false if there is none. */
static bool enter_child(Dwarf_Die *die, uint64_t address)
{
    Dwarf_Die child;
    if (dwarf_child(die, &child))
        return false;
    do {
        if (has_code_inside(dwarf_tag(&child)) && dwarf_haspc(&child, address) == 1) {
            *die = child;
            return true;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

/* From the function inwards; filled from the end of the array, then moved to its start. */
static int find_chain(struct unit *unit, Dwarf_Die die, uint64_t address, struct debug_function chain[DEBUG_CHAIN])
{
    int at = DEBUG_CHAIN - 1;
    chain[at] = (struct debug_function){0};
    set_names(&die, &chain[at]);
    while (at > 0 && enter_child(&die, address)) {
        if (dwarf_tag(&die) != DW_TAG_inlined_subroutine)
            continue;
        set_call(unit, &die, &chain[at]);
        chain[--at] = (struct debug_function){0};
        set_names(&die, &chain[at]);
    }
    for (int i = 0; i < DEBUG_CHAIN - at; i++)
        chain[i] = chain[at + i];
    return DEBUG_CHAIN - at;
}

int debug_lines_find(struct debug_lines *lines, uint64_t address, struct debug_function chain[DEBUG_CHAIN])
{
    uint32_t number = address_table_find(&lines->table, address);
    if (number == UINT32_MAX)
        return 0;
    struct unit *unit = &lines->units[number];
    if (!unit->is_indexed) {
        unit->is_indexed = true;
        if (index_functions(unit, &unit->contents, 0))
            return STATUS_NO_MEMORY;
        address_table_sort(&unit->functions);
    }
    uint32_t function = address_table_find(&unit->functions, address);
    int count = 1;
    if (function == UINT32_MAX)
        chain[0] = (struct debug_function){0};
    else
        count = find_chain(unit, unit->dies[function], address, chain);
    Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
    if (line) {
        chain[0].file = dwarf_linesrc(line, NULL, NULL);
        if (dwarf_lineno(line, &chain[0].line))
            chain[0].line = 0;
    }
    return function == UINT32_MAX && !line ? 0 : count;
}
