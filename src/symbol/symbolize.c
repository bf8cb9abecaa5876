/* Names for a snapshot's native frames.  Uses src/snapshot, src/base and the rest of this room. */
#include "symbol/symbolize.h"

#include "base/array.h"
#include "symbol/debug_lines.h"
#include "symbol/demangle.h"
#include "symbol/module_file.h"
#include "symbol/perf_map.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define ROOM (1u << 20) /* bytes of stack: libdw keeps tables there of more than 100 KiB */

struct wanted {
    uint32_t module; /* the first with the same file; NONE32: none */
    uint32_t frame;
    uint64_t offset;
};

struct symbolizer {
    struct snapshot *snapshot;
    const struct symbolize_options *options;
    struct symbolize_counts counts;
    struct wanted *wanted;
    size_t wanted_count;
    uint32_t *inlined; /* new frames, outermost first, of all lookups */
    size_t inlined_count, inlined_capacity;
    size_t *first_inlined;   /* by old frame: where its own begin ... */
    uint8_t *inlined_counts; /* ... and how many; DEBUG_CHAIN at most */
    size_t old_frames;
    struct module_file *file;
    struct debug_lines *lines;
    uint64_t bias;
    struct perf_map perf;
};

/* What a lookup found, before it goes into frames. */
struct found {
    struct debug_function chain[DEBUG_CHAIN];
    int count; /* 0: nothing */
};

static bool same_file(const struct module *a, const struct module *b)
{
    return a->path == b->path && a->build_id_length == b->build_id_length &&
           memcmp(a->build_id, b->build_id, a->build_id_length) == 0;
}

/* For each module the first one with the same file: libraries are loaded again, by other processes, too. */
static uint32_t *first_modules(const struct snapshot *snapshot)
{
    uint32_t *first = calloc(snapshot->module_count + 1, sizeof(*first));
    struct table index = {0};
    for (uint32_t i = 0; first && i < snapshot->module_count; i++) {
        const struct module *module = &snapshot->modules[i];
        uint64_t key = hash_mix(module->path) ^ hash_bytes(module->build_id, module->build_id_length);
        uint32_t *place = table_at(&index, key, i);
        if (!place) {
            free(first);
            first = NULL;
            break;
        }
        first[i] = same_file(module, &snapshot->modules[*place]) ? *place : i;
    }
    table_free(&index);
    return first;
}

static int by_place(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->frame > y->frame) - (x->frame < y->frame);
}

static int collect(struct symbolizer *s)
{
    const struct snapshot *snapshot = s->snapshot;
    uint32_t *first = first_modules(snapshot);
    s->wanted = calloc(snapshot->frame_count + 1, sizeof(*s->wanted));
    s->first_inlined = calloc(snapshot->frame_count + 1, sizeof(*s->first_inlined));
    s->inlined_counts = calloc(snapshot->frame_count + 1, 1);
    s->old_frames = snapshot->frame_count;
    if (!first || !s->wanted || !s->first_inlined || !s->inlined_counts) {
        free(first);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < snapshot->frame_count; i++) {
        const struct frame *frame = &snapshot->frames[i];
        if (!(frame->flags & FRAME_NATIVE) || frame->flags & FRAME_SYMBOLIZED)
            continue;
        uint32_t module = frame->module == NONE32 ? NONE32 : first[frame->module];
        s->wanted[s->wanted_count++] = (struct wanted){module, i, frame->offset};
    }
    free(first);
    qsort(s->wanted, s->wanted_count, sizeof(*s->wanted), by_place);
    s->counts.frames = s->wanted_count;
    return 0;
}

static int open_module(struct symbolizer *s, uint32_t number)
{
    if (number == NONE32)
        return 0;
    const struct module *module = &s->snapshot->modules[number];
    const char *path = snapshot_content_text(s->snapshot, module->path, NULL);
    int status = module_file_open(path, module->build_id, module->build_id_length, &s->file);
    if (status == STATUS_NO_MEMORY)
        return status;
    s->counts.modules += status == 0;
    s->counts.refused += status != 0;
    if (status || (s->options && s->options->without_lines))
        return 0;
    Dwarf *dwarf = module_file_dwarf(s->file, &s->bias);
    if (dwarf && !(s->lines = debug_lines_new(dwarf)))
        return STATUS_NO_MEMORY;
    return 0;
}

static void close_module(struct symbolizer *s)
{
    debug_lines_free(s->lines);
    module_file_close(s->file);
    s->lines = NULL;
    s->file = NULL;
}

/* `train.constprop.0` is the compiler's copy of `train`. */
static bool is_clone(const char *symbol, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    return length && symbol && strncmp(symbol, name, length) == 0 && symbol[length] == '.';
}

/* The offset is that of a return address: what called stands before it. */
static int look_up(struct symbolizer *s, const struct wanted *wanted, struct found *found)
{
    uint64_t address = wanted->offset ? wanted->offset - 1 : 0;
    found->count = 0;
    s->counts.lookups++;
    if (wanted->module == NONE32) {
        const char *name = s->perf.text ? perf_map_find(&s->perf, address) : NULL;
        if (name) {
            found->chain[0] = (struct debug_function){.name = name, .file = s->perf.path};
            found->count = 1;
        }
        return 0;
    }
    if (!s->file)
        return 0;
    if (s->lines) {
        found->count = debug_lines_find(s->lines, address - s->bias, found->chain);
        if (found->count < 0)
            return found->count;
    }
    const char *symbol = module_file_symbol(s->file, address);
    struct debug_function *outer = &found->chain[found->count ? found->count - 1 : 0];
    if (!found->count && symbol) {
        *outer = (struct debug_function){0};
        found->count = 1;
    }
    if (found->count && !outer->linkage && !is_clone(symbol, outer->name))
        outer->linkage = symbol;
    return 0;
}

static uint32_t text_object(struct symbolizer *s, const char *text)
{
    return snapshot_shared_string(s->snapshot, text, strlen(text));
}

/* Write what was found into the frame and, for what was inlined, into new frames. */
static int name_frame(struct symbolizer *s, uint32_t number, const struct debug_function *function, uint8_t flags)
{
    struct snapshot *snapshot = s->snapshot;
    const char *name = function->linkage ? demangle(function->linkage) : function->name ? function->name : "??";
    uint32_t name_object = text_object(s, name), file_object;
    struct frame *frame = &snapshot->frames[number];
    if (function->file)
        file_object = text_object(s, function->file);
    else if (frame->module != NONE32)
        file_object = text_object(s, snapshot_content_text(snapshot, snapshot->modules[frame->module].path, NULL));
    else
        file_object = STRING_NONE;
    if (name_object == NONE32 || (file_object == NONE32 && function->file))
        return STATUS_NO_MEMORY;
    frame->name = name_object;
    frame->filename = file_object;
    frame->line = function->file ? function->line : 0;
    frame->flags |= (uint8_t)(FRAME_SYMBOLIZED | flags);
    return 0;
}

static int add_inlined(struct symbolizer *s, const struct found *found, uint32_t of)
{
    for (int i = found->count - 2; i >= 0; i--) {
        struct frame copy = s->snapshot->frames[of];
        uint32_t number = snapshot_add_frame(s->snapshot, &copy);
        if (number == NONE32 ||
            array_reserve(&s->inlined, &s->inlined_capacity, s->inlined_count + 1, sizeof(*s->inlined)))
            return STATUS_NO_MEMORY;
        s->inlined[s->inlined_count++] = number;
        s->counts.inlined++;
        if (name_frame(s, number, &found->chain[i], FRAME_INLINED))
            return STATUS_NO_MEMORY;
    }
    return 0;
}

/* Not found: `library.so+0x1234` in the module's file. */
static int name_unknown(struct symbolizer *s, uint32_t number)
{
    struct snapshot *snapshot = s->snapshot;
    struct frame *frame = &snapshot->frames[number];
    const char *path =
        frame->module == NONE32 ? "" : snapshot_content_text(snapshot, snapshot->modules[frame->module].path, NULL);
    const char *slash = strrchr(path, '/');
    char name[512];
    snprintf(name, sizeof(name), "%.400s%s0x%" PRIx64, slash ? slash + 1 : path, *path ? "+" : "", frame->offset);
    uint32_t name_object = text_object(s, name), file_object = *path ? text_object(s, path) : STRING_NONE;
    if (name_object == NONE32 || (*path && file_object == NONE32))
        return STATUS_NO_MEMORY;
    frame = &snapshot->frames[number];
    frame->name = name_object;
    frame->filename = file_object;
    frame->line = 0;
    return 0;
}

/* The frames of one place: looked up once. */
static int name_place(struct symbolizer *s, const struct wanted *wanted, size_t count)
{
    struct found found;
    int status = look_up(s, wanted, &found);
    if (status)
        return status;
    size_t first = s->inlined_count;
    s->counts.found += found.count > 0;
    if (found.count > 1 && add_inlined(s, &found, wanted->frame))
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count && !status; i++) {
        uint32_t frame = wanted[i].frame;
        status = found.count ? name_frame(s, frame, &found.chain[found.count - 1], 0) : name_unknown(s, frame);
        s->first_inlined[frame] = first;
        s->inlined_counts[frame] = (uint8_t)(s->inlined_count - first);
    }
    return status;
}

static int name_all(struct symbolizer *s)
{
    int status = 0;
    for (size_t i = 0, next; i < s->wanted_count && !status; i = next) {
        const struct wanted *wanted = &s->wanted[i];
        for (next = i + 1; next < s->wanted_count && s->wanted[next].module == wanted->module &&
                           s->wanted[next].offset == wanted->offset;)
            next++;
        if (i == 0 || wanted->module != s->wanted[i - 1].module) {
            close_module(s);
            status = open_module(s, wanted->module);
        }
        if (!status)
            status = name_place(s, wanted, next - i);
        if (s->options && s->options->progress)
            s->options->progress(s->options->progress_context, next, s->wanted_count);
    }
    close_module(s);
    return status;
}

static uint32_t push_old_frame(struct symbolizer *s, uint32_t stack, uint32_t frame)
{
    stack = snapshot_push_frame(s->snapshot, stack, frame);
    for (unsigned i = 0; stack != NONE32 && i < s->inlined_counts[frame]; i++)
        stack = snapshot_push_frame(s->snapshot, stack, s->inlined[s->first_inlined[frame] + i]);
    return stack;
}

static int fill_tree(struct symbolizer *s, const struct stack_node *old, size_t count, uint32_t *moved)
{
    struct snapshot *snapshot = s->snapshot;
    if (array_reserve(&snapshot->stacks, &snapshot->stack_capacity, count, sizeof(*snapshot->stacks)))
        return STATUS_NO_MEMORY;
    snapshot->stacks[snapshot->stack_count++] = old[STACK_EMPTY];
    for (size_t i = 1; i < count; i++) { /* callers come before callees */
        moved[i] = push_old_frame(s, moved[old[i].parent], old[i].frame);
        if (moved[i] == NONE32)
            return STATUS_NO_MEMORY;
    }
    return 0;
}

/* The same stacks with the inlined frames in them: a new tree, and contexts that point into it. */
static int rebuild_stacks(struct symbolizer *s)
{
    struct snapshot *snapshot = s->snapshot;
    struct stack_node *old = snapshot->stacks;
    struct table old_index = snapshot->stack_index;
    size_t count = snapshot->stack_count, capacity = snapshot->stack_capacity;
    uint32_t *moved = calloc(count, sizeof(*moved));
    if (!moved)
        return STATUS_NO_MEMORY;
    snapshot->stacks = NULL;
    snapshot->stack_count = snapshot->stack_capacity = 0;
    snapshot->stack_index = (struct table){0};
    int status = fill_tree(s, old, count, moved);
    if (status) {
        free(snapshot->stacks);
        table_free(&snapshot->stack_index);
        snapshot->stacks = old;
        snapshot->stack_index = old_index;
        snapshot->stack_count = count;
        snapshot->stack_capacity = capacity;
    } else {
        for (size_t i = 0; i < snapshot->context_count; i++)
            snapshot->contexts[i] = moved[snapshot->contexts[i]];
        free(old);
        table_free(&old_index);
    }
    free(moved);
    return status;
}

struct naming {
    struct symbolizer *symbolizer;
    int status;
};

static void *name_in_thread(void *argument)
{
    struct naming *naming = argument;
    naming->status = name_all(naming->symbolizer);
    return NULL;
}

/* Where the main stack may not grow to what libdw takes, another one is used. */
static int name_with_room(struct symbolizer *s)
{
    struct naming naming = {s, 0};
    struct rlimit limit;
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= ROOM || pthread_attr_init(&attributes))
        return name_all(s);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = !pthread_attr_setstacksize(&attributes, ROOM) &&
                !pthread_create(&thread, &attributes, name_in_thread, &naming);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!made)
        return name_all(s);
    pthread_join(thread, NULL);
    return naming.status;
}

int symbolize_snapshot(struct snapshot *snapshot, const struct symbolize_options *options, struct error *err)
{
    struct symbolizer s = {.snapshot = snapshot, .options = options};
    int status = collect(&s);
    if (!status && s.wanted_count && s.wanted[s.wanted_count - 1].module == NONE32 && snapshot->process_count == 1 &&
        !(options && options->without_perf_map)) {
        const char *folder = options && options->perf_folder ? options->perf_folder : "/tmp";
        status = perf_map_open(&s.perf, folder, snapshot->processes[0].pid);
        if (status == STATUS_NOT_FOUND)
            status = 0;
    }
    if (!status)
        status = name_with_room(&s);
    if (!status && s.inlined_count)
        status = rebuild_stacks(&s);
    perf_map_close(&s.perf);
    free(s.wanted);
    free(s.inlined);
    free(s.first_inlined);
    free(s.inlined_counts);
    if (options && options->counts)
        *options->counts = s.counts;
    return status ? error_no_memory(err) : 0;
}
