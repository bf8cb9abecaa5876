/* Names for native frames: src/symbol against a library whose functions are known.  Arguments: the library, the same
 * without symbols, the same with its debug information in a file of its own. */
#include "symbol/symbolize.h"

#include "probe.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *probe_path, *bare_path, *split_path;

/* What the loader knows of the library, and the addresses that its functions called back from. */
static struct {
    const struct probe_lines *lines;
    uint64_t load_address;
    uint8_t build_id[32];
    size_t build_id_length;
    uint64_t outer, plain, mangled; /* offsets of return addresses */
} probe;

static void remember_caller(void *context)
{
    *(uint64_t *)context = (uint64_t)(uintptr_t)__builtin_return_address(0) - probe.load_address;
}

static void read_build_id(const struct dl_phdr_info *info, const ElfW(Phdr) * segment)
{
    const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr), *end = at + segment->p_memsz;
    while (at + sizeof(ElfW(Nhdr)) < end) {
        const ElfW(Nhdr) *note = (const void *)at;
        const char *content = at + sizeof(*note) + ((note->n_namesz + 3) & ~3u);
        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= sizeof(probe.build_id)) {
            memcpy(probe.build_id, content, note->n_descsz);
            probe.build_id_length = note->n_descsz;
        }
        at = content + ((note->n_descsz + 3) & ~3u);
    }
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *name)
{
    (void)size;
    if (!strstr(info->dlpi_name, name))
        return 0;
    probe.load_address = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            read_build_id(info, &info->dlpi_phdr[i]);
    return 1;
}

static int load_probe(void **state)
{
    void *library = dlopen(probe_path, RTLD_NOW);
    (void)state;
    if (!library) {
        print_error("%s\n", dlerror());
        return -1;
    }
    dl_iterate_phdr(look_at_module, (void *)"libprobe");
    probe.lines = dlsym(library, "probe_lines");
    void (*function)(probe_callback *, void *) = (void (*)(probe_callback *, void *))dlsym(library, "probe_outer");
    function(remember_caller, &probe.outer);
    function = (void (*)(probe_callback *, void *))dlsym(library, "probe_plain");
    function(remember_caller, &probe.plain);
    function = (void (*)(probe_callback *, void *))dlsym(library, "_ZN5probe7mangledERKNS_4ItemIiEE");
    function(remember_caller, &probe.mangled);
    return 0;
}

static uint32_t add_module(struct snapshot *snapshot, const char *path)
{
    struct module module = {.path = snapshot_string(snapshot, path, strlen(path)),
                            .build_id_length = (uint8_t)probe.build_id_length};
    memcpy(module.build_id, probe.build_id, probe.build_id_length);
    return snapshot_add_module(snapshot, &module);
}

static uint32_t add_native(struct snapshot *snapshot, uint32_t module, uint64_t offset)
{
    struct frame frame = {
        .name = STRING_NONE, .filename = STRING_NONE, .module = module, .flags = FRAME_NATIVE, .offset = offset};
    return snapshot_add_frame(snapshot, &frame);
}

static const char *name_of(const struct snapshot *snapshot, uint32_t frame)
{
    return snapshot_object_text(snapshot, snapshot->frames[frame].name, NULL);
}

static const char *file_of(const struct snapshot *snapshot, uint32_t frame)
{
    return snapshot_object_text(snapshot, snapshot->frames[frame].filename, NULL);
}

static void assert_ends(const char *text, const char *end)
{
    assert_true(strlen(text) >= strlen(end));
    assert_string_equal(text + strlen(text) - strlen(end), end);
}

static struct symbolize_counts symbolize(struct snapshot *snapshot)
{
    struct symbolize_counts counts;
    struct symbolize_options options = {.counts = &counts, .without_perf_map = true};
    struct error err = {0};
    assert_int_equal(symbolize_snapshot(snapshot, &options, &err), 0);
    assert_true(snapshot_is_valid(snapshot, &err));
    return counts;
}

static void inlined_function_becomes_a_frame_of_its_own_inside_its_caller(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    struct frame python = {.name = snapshot_shared_string(snapshot, "train", 5),
                           .filename = snapshot_shared_string(snapshot, "t.py", 4),
                           .line = 7,
                           .module = NONE32,
                           .flags = FRAME_PYTHON};
    (void)state;
    uint32_t outside = snapshot_add_frame(snapshot, &python);
    uint32_t native = add_native(snapshot, add_module(snapshot, probe_path), probe.outer);
    uint32_t inside = snapshot_add_frame(snapshot, &python);
    uint32_t node = snapshot_push_frame(snapshot, STACK_EMPTY, outside);
    uint32_t context = snapshot_add_context(snapshot, node), empty = snapshot_add_context(snapshot, STACK_EMPTY);
    node = snapshot_push_frame(snapshot, snapshot_push_frame(snapshot, node, native), inside);
    uint32_t deep = snapshot_add_context(snapshot, node);

    struct symbolize_counts counts = symbolize(snapshot);
    assert_int_equal(counts.frames, 1);
    assert_int_equal(counts.lookups, 1);
    assert_int_equal(counts.found, 1);
    assert_int_equal(counts.inlined, 1);

    assert_int_equal(snapshot->contexts[empty], STACK_EMPTY);
    assert_int_equal(snapshot->stacks[snapshot->contexts[context]].depth, 1);
    const struct stack_node *at = &snapshot->stacks[snapshot->contexts[deep]];
    assert_int_equal(at->depth, 4);
    assert_int_equal(at->frame, inside);
    at = &snapshot->stacks[at->parent];
    assert_string_equal(name_of(snapshot, at->frame), "probe_inner");
    assert_ends(file_of(snapshot, at->frame), "/probe.c");
    assert_int_equal(snapshot->frames[at->frame].line, probe.lines->inner);
    assert_int_equal(snapshot->frames[at->frame].flags, FRAME_NATIVE | FRAME_SYMBOLIZED | FRAME_INLINED);
    at = &snapshot->stacks[at->parent];
    assert_int_equal(at->frame, native);
    assert_string_equal(name_of(snapshot, native), "probe_outer");
    assert_ends(file_of(snapshot, native), "/probe.c");
    assert_int_equal(snapshot->frames[native].line, probe.lines->outer);
    assert_int_equal(snapshot->frames[native].flags, FRAME_NATIVE | FRAME_SYMBOLIZED);
    at = &snapshot->stacks[at->parent];
    assert_int_equal(at->frame, outside);
    assert_int_equal(at->parent, STACK_EMPTY);
    snapshot_free(snapshot);
}

static void mangled_names_are_shown_as_in_the_source(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    (void)state;
    uint32_t frame = add_native(snapshot, add_module(snapshot, probe_path), probe.mangled);
    symbolize(snapshot);
    assert_string_equal(name_of(snapshot, frame), "probe::mangled(probe::Item<int> const&)");
    snapshot_free(snapshot);
}

static void without_debug_information_the_symbol_is_named_in_its_library(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    (void)state;
    uint32_t frame = add_native(snapshot, add_module(snapshot, bare_path), probe.outer);
    symbolize(snapshot);
    assert_string_equal(name_of(snapshot, frame), "probe_outer");
    assert_string_equal(file_of(snapshot, frame), bare_path);
    assert_int_equal(snapshot->frames[frame].line, 0);
    assert_int_equal(snapshot->stack_count, 1);
    snapshot_free(snapshot);
}

static void debug_information_is_found_in_a_file_of_its_own(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    (void)state;
    uint32_t frame = add_native(snapshot, add_module(snapshot, split_path), probe.outer);
    struct symbolize_counts counts = symbolize(snapshot);
    assert_int_equal(counts.inlined, 1);
    assert_string_equal(name_of(snapshot, frame), "probe_outer");
    assert_int_equal(snapshot->frames[frame].line, probe.lines->outer);
    snapshot_free(snapshot);
}

static void assert_refused(struct snapshot *snapshot, uint32_t frame, const char *name)
{
    struct symbolize_counts counts = symbolize(snapshot);
    assert_int_equal(counts.modules, 0);
    assert_int_equal(counts.found, 0);
    assert_int_equal(counts.refused, 1);
    assert_string_equal(name_of(snapshot, frame), name);
    assert_int_equal(snapshot->frames[frame].flags, FRAME_NATIVE);
    snapshot_free(snapshot);
}

static void a_file_of_another_build_is_not_used(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    char name[64];
    (void)state;
    uint32_t frame = add_native(snapshot, add_module(snapshot, probe_path), probe.plain);
    snapshot->modules[0].build_id[5] ^= 1;
    snprintf(name, sizeof(name), "libprobe.so+0x%" PRIx64, probe.plain);
    assert_refused(snapshot, frame, name);
}

static void without_a_recorded_build_id_no_file_is_used(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    char name[64];
    (void)state;
    uint32_t frame = add_native(snapshot, add_module(snapshot, probe_path), probe.plain);
    snapshot->modules[0].build_id_length = 0;
    snprintf(name, sizeof(name), "libprobe.so+0x%" PRIx64, probe.plain);
    assert_refused(snapshot, frame, name);
}

static void what_is_no_regular_file_is_not_opened(void **state)
{
    char folder[] = "/tmp/test_symbolize.XXXXXX", path[64];
    const char *others[] = {"/dev/zero", "relative.so", "/", "", "[vdso]"};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    uint32_t frame = add_native(snapshot, add_module(snapshot, path), 0x1234); /* would hang if it were opened */
    assert_refused(snapshot, frame, "pipe+0x1234");
    unlink(path);
    rmdir(folder);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        snapshot = snapshot_new(SOURCE_RECORDED);
        add_native(snapshot, add_module(snapshot, others[i]), 1);
        struct symbolize_counts counts = symbolize(snapshot);
        assert_int_equal(counts.refused, 1);
        snapshot_free(snapshot);
    }
}

static void each_place_is_looked_up_once_however_many_frames_name_it(void **state)
{
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    (void)state;
    uint64_t offsets[3] = {probe.outer, probe.plain, probe.mangled};
    uint32_t modules[2] = {add_module(snapshot, probe_path), add_module(snapshot, probe_path)}; /* loaded twice */
    for (unsigned i = 0; i < 6000; i++)
        add_native(snapshot, modules[i % 2], offsets[i % 3]);
    struct symbolize_counts counts = symbolize(snapshot);
    assert_int_equal(counts.frames, 6000);
    assert_int_equal(counts.lookups, 3);
    assert_int_equal(counts.found, 3);
    assert_int_equal(counts.inlined, 1);
    assert_int_equal(counts.modules, 1);
    for (uint32_t i = 0; i < 6000; i++)
        assert_string_equal(name_of(snapshot, i), i % 3 == 0   ? "probe_outer"
                                                  : i % 3 == 1 ? "probe_plain"
                                                               : "probe::mangled(probe::Item<int> const&)");
    counts = symbolize(snapshot); /* nothing is left to do */
    assert_int_equal(counts.lookups, 0);
    snapshot_free(snapshot);
}

static void generated_code_is_named_by_the_users_perf_map_and_by_no_link(void **state)
{
    char folder[] = "/tmp/test_symbolize.XXXXXX", path[64], link[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/perf-4711.map", folder);
    snprintf(link, sizeof(link), "%s/perf-4712.map", folder);
    FILE *map = fopen(path, "w");
    assert_non_null(map);
    fputs("7f0000001000 100 jit::first one\nnonsense\n7f0000001100 80 jit::old\n7f0000001100 80 jit::new\n", map);
    fclose(map);
    assert_int_equal(symlink(path, link), 0);
    for (int pid = 4711; pid <= 4712; pid++) {
        struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
        struct symbolize_options options = {.perf_folder = folder};
        struct error err = {0};
        snapshot->processes[0].pid = pid;
        uint32_t first = add_native(snapshot, NONE32, 0x7f0000001100),
                 second = add_native(snapshot, NONE32, 0x7f0000001140);
        uint32_t none = add_native(snapshot, NONE32, 0x7f0000002000);
        assert_int_equal(symbolize_snapshot(snapshot, &options, &err), 0);
        assert_string_equal(name_of(snapshot, first), pid == 4711 ? "jit::first one" : "0x7f0000001100");
        assert_string_equal(name_of(snapshot, second), pid == 4711 ? "jit::new" : "0x7f0000001140");
        assert_string_equal(name_of(snapshot, none), "0x7f0000002000");
        snapshot_free(snapshot);
    }
    unlink(link);
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inlined_function_becomes_a_frame_of_its_own_inside_its_caller),
        cmocka_unit_test(mangled_names_are_shown_as_in_the_source),
        cmocka_unit_test(without_debug_information_the_symbol_is_named_in_its_library),
        cmocka_unit_test(debug_information_is_found_in_a_file_of_its_own),
        cmocka_unit_test(a_file_of_another_build_is_not_used),
        cmocka_unit_test(without_a_recorded_build_id_no_file_is_used),
        cmocka_unit_test(what_is_no_regular_file_is_not_opened),
        cmocka_unit_test(each_place_is_looked_up_once_however_many_frames_name_it),
        cmocka_unit_test(generated_code_is_named_by_the_users_perf_map_and_by_no_link),
    };
    char full[3][4096];
    if (argc != 4)
        return 2;
    for (int i = 0; i < 3; i++)
        if (!realpath(argv[i + 1], full[i]))
            return 2;
    probe_path = full[0];
    bare_path = full[1];
    split_path = full[2];
    return cmocka_run_group_tests(tests, load_probe, NULL);
}
