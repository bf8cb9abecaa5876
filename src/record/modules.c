/*
 * Which file a program counter belongs to.  The loader's list is read by dl_iterate_phdr, whose counters tell whether
 * it changed; the file keeps every module that ever was, the sorted ranges here those that are.  dl_iterate_phdr takes
 * the loader's list lock only, not the one that is held while constructors run.
 */
#include "record/internal.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK_EVERY (UINT64_C(20) << 20) /* ticks between two looks at the counters: about 10 ms */

struct range {
    uint64_t start, end, load_address;
    uint32_t module;
};

static struct {
    struct range *ranges; /* sorted */
    size_t count, capacity;
    uint64_t counters;    /* additions and removals when `ranges` was made */
    uint64_t seen;        /* the last ones seen by anybody */
    uint64_t next_check;
    uint32_t generation;
} modules;

static int read_counters(struct dl_phdr_info *info, size_t size, void *data)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
        *(uint64_t *)data = (uint64_t)(uint32_t)info->dlpi_adds | (uint64_t)info->dlpi_subs << 32;
    return 1;
}

static uint64_t counters_now(void)
{
    uint64_t counters = 0;
    dl_iterate_phdr(read_counters, &counters);
    return counters;
}

uint32_t modules_current(uint64_t now, bool force)
{
    if (force || now >= __atomic_load_n(&modules.next_check, __ATOMIC_RELAXED)) {
        __atomic_store_n(&modules.next_check, now + CHECK_EVERY, __ATOMIC_RELAXED);
        uint64_t counters = counters_now();
        if (__atomic_exchange_n(&modules.seen, counters, __ATOMIC_RELAXED) != counters)
            __atomic_fetch_add(&modules.generation, 1, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&modules.generation, __ATOMIC_RELAXED);
}

uint32_t modules_unloads(void)
{
    return (uint32_t)(__atomic_load_n(&modules.seen, __ATOMIC_RELAXED) >> 32);
}

void recorder_modules_changed(void)
{
    __atomic_store_n(&modules.next_check, 0, __ATOMIC_RELAXED);
}

/* The GNU build id out of a note segment. */
static void find_build_id(const char *note, uint64_t length, struct ring_module *module)
{
    while (length >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) header;
        memcpy(&header, note, sizeof(header));
        uint64_t name = (header.n_namesz + UINT64_C(3)) & ~UINT64_C(3);
        uint64_t content = (header.n_descsz + UINT64_C(3)) & ~UINT64_C(3);
        if (name > length - sizeof(header) || content > length - sizeof(header) - name)
            return;
        if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && !memcmp(note + sizeof(header), "GNU", 4) &&
            header.n_descsz <= sizeof(module->build_id)) {
            memcpy(module->build_id, note + sizeof(header) + name, header.n_descsz);
            module->build_id_length = header.n_descsz;
            return;
        }
        note += sizeof(header) + name + content;
        length -= sizeof(header) + name + content;
    }
}

static bool is_stack_end(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    return !strncmp(base, "libc.so", 7) || !strncmp(base, "libc-", 5) || !strncmp(base, "libpthread", 10) ||
           !strncmp(base, "ld-linux", 8) || !strncmp(base, "ld-", 3) || !strncmp(base, "ld.so", 5);
}

/* The module's path into `path`: the program's own, an absolute one, or one made absolute. */
static size_t module_path(const char *name, bool is_program, char *path, size_t size)
{
    if (is_program)
        snprintf(path, size, "%s", recorder.program);
    else if (!strchr(name, '/') || name[0] == '/' || !getcwd(path, size))
        snprintf(path, size, "%s", name);
    else if (strlen(path) + strlen(name) + 2 <= size)
        snprintf(path + strlen(path), size - strlen(path), "/%s", name);
    return strlen(path);
}

static bool same_path(const struct ring_module *module, const char *path)
{
    for (uint32_t i = 0; i < module->path_length; i++) { /* may cross chunks */
        const char *c = ring_table_at(RING_STRINGS, module->path + i);
        if (!c || *c != path[i])
            return false;
    }
    return true;
}

static int64_t known_module(const struct ring_module *wanted, const char *path)
{
    uint64_t count = recorder.header->tables[RING_MODULES].count;
    for (uint64_t i = count; i-- > 0;) {
        const struct ring_module *module = ring_table_at(RING_MODULES, i);
        if (module && module->load_address == wanted->load_address && module->size == wanted->size &&
            module->path_length == wanted->path_length && module->build_id_length == wanted->build_id_length &&
            !memcmp(module->build_id, wanted->build_id, sizeof(module->build_id)) && same_path(module, path))
            return (int64_t)i;
    }
    return -1;
}

static int64_t module_number(struct ring_module *module, const char *path)
{
    int64_t number = known_module(module, path);
    if (number >= 0)
        return number;
    int64_t start = ring_table_add(RING_STRINGS, path, module->path_length);
    if (start < 0)
        return -1;
    module->path = (uint64_t)start;
    return ring_table_add(RING_MODULES, module, 1);
}

static bool add_range(const struct range *range)
{
    if (modules.count == modules.capacity) {
        size_t capacity = modules.capacity ? modules.capacity * 2 : 512;
        struct range *ranges = mmap(NULL, capacity * sizeof(*ranges), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (ranges == MAP_FAILED)
            return false;
        if (modules.ranges) {
            memcpy(ranges, modules.ranges, modules.count * sizeof(*ranges));
            munmap(modules.ranges, modules.capacity * sizeof(*ranges));
        }
        modules.ranges = ranges;
        modules.capacity = capacity;
    }
    /* Sorted as it comes: lists are short and mostly in order. */
    size_t place = modules.count++;
    for (; place > 0 && modules.ranges[place - 1].start > range->start; place--)
        modules.ranges[place] = modules.ranges[place - 1];
    modules.ranges[place] = *range;
    return true;
}

struct refresh {
    bool first;
    char path[4096];
};

static int add_module(struct dl_phdr_info *info, size_t size, void *data)
{
    struct refresh *refresh = data;
    (void)size;
    struct ring_module module = {.load_address = info->dlpi_addr};
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    bool is_program = refresh->first;
    refresh->first = false;
    uint64_t low = UINT64_MAX, high = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD) {
            low = segment->p_vaddr < low ? segment->p_vaddr : low;
            high = segment->p_vaddr + segment->p_memsz > high ? segment->p_vaddr + segment->p_memsz : high;
        } else if (segment->p_type == PT_NOTE && !module.build_id_length) {
            find_build_id((const char *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz, &module);
        }
    }
    if (low >= high)
        return 0;
    module.size = high;
    module.path_length = (uint32_t)module_path(name, is_program, refresh->path, sizeof(refresh->path));
    if (is_program) {
        module.flags = RING_MODULE_PROGRAM;
        module.entry = getauxval(AT_ENTRY) - info->dlpi_addr;
    } else if (is_stack_end(name)) {
        module.flags = RING_MODULE_STACK_END;
    }
    int64_t number = module_number(&module, refresh->path);
    struct range range = {info->dlpi_addr + low, info->dlpi_addr + high, info->dlpi_addr,
                          number < 0 ? RING_MODULE_UNKNOWN : (uint32_t)number};
    if (number >= 0)
        add_range(&range);
    return 0;
}

/* True if a module was unloaded since the last time. */
bool modules_refresh(void)
{
    static struct refresh refresh; /* under the intern lock; too big for a small thread's stack */
    uint64_t counters = counters_now();
    if (modules.count && counters == modules.counters)
        return false;
    bool unloaded = modules.count && counters >> 32 != modules.counters >> 32;
    modules.counters = counters;
    modules.count = 0;
    refresh.first = true;
    dl_iterate_phdr(add_module, &refresh);
    return unloaded;
}

uint32_t modules_resolve(uint64_t pc, uint64_t *offset)
{
    size_t low = 0, high = modules.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (modules.ranges[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < modules.count && modules.ranges[low].start <= pc) {
        *offset = pc - modules.ranges[low].load_address;
        return modules.ranges[low].module;
    }
    *offset = pc;
    return RING_MODULE_UNKNOWN;
}

void modules_forget(void)
{
    modules.count = 0;
    modules.counters = modules.seen = 0;
    modules.next_check = 0;
    __atomic_fetch_add(&modules.generation, 1, __ATOMIC_RELAXED);
}
