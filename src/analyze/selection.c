/* Selection: parsing the options' texts, and the predicates.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/selection.h"

#include "analyze/frame_text.h"
#include "base/size.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MATCHES_STACK 1u
#define MATCHES_NOT_STACK 2u

void selection_init(struct selection *selection)
{
    memset(selection, 0, sizeof(*selection));
    selection->device = -1;
}

void selection_free(struct selection *selection)
{
    if (selection->has_stack)
        regfree(&selection->stack);
    if (selection->has_not_stack)
        regfree(&selection->not_stack);
    if (selection->has_annotation)
        regfree(&selection->annotation);
    selection_ranges_free(&selection->ranges);
    free(selection->matches);
    free(selection->pools);
    selection_init(selection);
}

/* --- parsing ---------------------------------------------------------------------------------------------------- */

static bool parse_integer(const char *text, char **end, int64_t *number)
{
    errno = 0;
    if (!isdigit((unsigned char)text[*text == '-']))
        return false;
    if (text[0] == '-')
        *number = strtoll(text, end, 0);
    else
        *number = (int64_t)strtoull(text, end, 0); /* a handle may have the top bit set */
    return errno == 0;
}

static int set_device(struct selection *selection, const char *text, struct error *err)
{
    char *end;
    int64_t number;
    if (strcmp(text, "all") == 0) {
        selection->device = -1;
        return STATUS_OK;
    }
    if (!isdigit((unsigned char)*text) || !parse_integer(text, &end, &number) || *end || number < 0 || number > UINT16_MAX)
        return error_set(err, STATUS_USAGE, "'%.60s': --device takes a number or all", text);
    selection->device = (int)number;
    return STATUS_OK;
}

static int set_stream(struct selection *selection, const char *text, struct error *err)
{
    char *end;
    if (!parse_integer(text, &end, &selection->stream) || *end)
        return error_set(err, STATUS_USAGE, "'%.60s': --stream takes the stream's number, as in 0 or 0x55d0", text);
    selection->has_stream = true;
    return STATUS_OK;
}

static int set_pool(struct selection *selection, const char *text, struct error *err)
{
    char *end, *last;
    if (!parse_integer(text, &end, &selection->pool[0]) || *end != ':' ||
        !parse_integer(end + 1, &last, &selection->pool[1]) || *last)
        return error_set(err, STATUS_USAGE, "'%.60s': --pool takes a pair, as in 0:1", text);
    selection->has_pool = true;
    return STATUS_OK;
}

/* One end of A..B: entries are whole numbers, times seconds. */
static bool parse_end(const char *text, size_t length, bool is_time, uint64_t *number)
{
    char copy[40], *end;
    if (!length || length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    const char *from = copy + (!is_time && *copy == '#');
    if (!isdigit((unsigned char)*from))
        return false;
    errno = 0;
    if (!is_time) {
        *number = strtoull(from, &end, 10);
        return errno == 0 && !*end;
    }
    uint64_t whole = strtoull(from, &end, 10), scale = 1000000, part = 0;
    if (*end == '.')
        for (end++; isdigit((unsigned char)*end); end++)
            if (scale > 1) {
                scale /= 10;
                part += (uint64_t)(*end - '0') * scale;
            }
    *number = whole * 1000000 + part;
    return errno == 0 && whole <= UINT64_C(1000000000000) && (!*end || strcmp(end, "s") == 0);
}

static int set_range(const char *text, const char *option, bool is_time, uint64_t *low, uint64_t *high, struct error *err)
{
    const char *dots = strstr(text, "..");
    size_t length = dots ? (size_t)(dots - text) : strlen(text);
    *low = 0;
    *high = is_time ? INT64_MAX : UINT64_MAX;
    bool is_right = length || dots;
    if (length)
        is_right = parse_end(text, length, is_time, low);
    if (dots && dots[2])
        is_right = is_right && parse_end(dots + 2, strlen(dots + 2), is_time, high);
    else if (!dots)
        *high = is_time ? *low : *low + 1; /* one entry */
    if (!is_right)
        return error_set(err, STATUS_USAGE, "'%.60s': --%s takes a range, as in %s", text, option,
                         is_time ? "1.5..3 (seconds from the start)" : "100..200");
    if (*low > *high)
        return error_set(err, STATUS_USAGE, "'%.60s': the lower end is above the upper one", text);
    return STATUS_OK;
}

static int set_actions(struct selection *selection, const char *text, struct error *err)
{
    selection->actions = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        enum action action = action_from_name(text, length);
        if (action == ACTION_OTHER && !(length == 5 && memcmp(text, "other", 5) == 0))
            return error_set(err, STATUS_USAGE,
                             "'%.*s' is no action; there are alloc, free_requested, free_completed, segment_alloc, "
                             "segment_free, segment_map, segment_unmap, snapshot, oom and other",
                             length > 40 ? 40 : (int)length, text);
        selection->actions |= UINT32_C(1) << action;
        text += length + (text[length] == ',');
    }
    if (!selection->actions)
        return error_set(err, STATUS_USAGE, "--action takes a list, as in alloc,oom");
    selection->has_actions = true;
    return STATUS_OK;
}

static int set_expression(regex_t *expression, bool *has, const char *text, struct error *err)
{
    if (*has)
        regfree(expression);
    *has = false;
    int failed = regcomp(expression, text, REG_EXTENDED | REG_NOSUB);
    if (failed) {
        char why[120];
        regerror(failed, expression, why, sizeof(why));
        return error_set(err, STATUS_USAGE, "'%.80s' is no regular expression: %s", text, why);
    }
    *has = true;
    return STATUS_OK;
}

int selection_set(struct selection *selection, const char *name, const char *text, struct error *err)
{
    uint64_t low, high;
    int status;
    if (strcmp(name, "device") == 0)
        return set_device(selection, text, err);
    if (strcmp(name, "stream") == 0)
        return set_stream(selection, text, err);
    if (strcmp(name, "pool") == 0)
        return set_pool(selection, text, err);
    if (strcmp(name, "action") == 0)
        return set_actions(selection, text, err);
    if (strcmp(name, "stack") == 0)
        return set_expression(&selection->stack, &selection->has_stack, text, err);
    if (strcmp(name, "not-stack") == 0)
        return set_expression(&selection->not_stack, &selection->has_not_stack, text, err);
    if (strcmp(name, "annotation") == 0)
        return set_expression(&selection->annotation, &selection->has_annotation, text, err);
    if (strcmp(name, "size") == 0) {
        status = size_parse_range(text, &selection->size_low, &selection->size_high, err);
        selection->has_size = selection->has_size || !status;
        return status;
    }
    if (strcmp(name, "entries") == 0) {
        status = set_range(text, name, false, &selection->first_entry, &selection->last_entry, err);
        selection->has_entries = selection->has_entries || !status;
        return status;
    }
    if (strcmp(name, "time") == 0) {
        status = set_range(text, name, true, &low, &high, err);
        if (!status) {
            selection->time_low = (int64_t)low;
            selection->time_high = (int64_t)high;
            selection->has_time = true;
        }
        return status;
    }
    if (strcmp(name, "frames") == 0) {
        if (strcmp(text, "user") != 0 && strcmp(text, "all") != 0)
            return error_set(err, STATUS_USAGE, "'%.60s': --frames takes user or all", text);
        selection->user_frames = strcmp(text, "user") == 0;
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE, "there is no selection by '%.60s'", name);
}

/* --- binding ---------------------------------------------------------------------------------------------------- */

/* What an expression is matched against: file:line:name, and the library of a native frame. */
static void frame_line(const struct snapshot *snapshot, const struct frame *frame, struct text *text)
{
    text_clear(text);
    size_t length;
    const char *part = snapshot_object_text(snapshot, frame->filename, &length);
    text_append(text, part, length);
    text_printf(text, ":%lld:", (long long)frame->line);
    part = snapshot_object_text(snapshot, frame->name, &length);
    text_append(text, part, length);
    if (frame->module != NONE32) {
        text_char(text, ' ');
        part = snapshot_content_text(snapshot, snapshot->modules[frame->module].path, &length);
        text_append(text, part, length);
    }
}

static int match_stacks(struct selection *selection, const struct snapshot *snapshot, struct error *err)
{
    uint8_t *frames = calloc(snapshot->frame_count + 1, 1);
    struct text line = {0};
    free(selection->matches);
    selection->matches = calloc(snapshot->stack_count + 1, 1);
    for (size_t i = 0; frames && i < snapshot->frame_count; i++) {
        frame_line(snapshot, &snapshot->frames[i], &line);
        if (selection->has_stack && regexec(&selection->stack, text_string(&line), 0, NULL, 0) == 0)
            frames[i] |= MATCHES_STACK;
        if (selection->has_not_stack && regexec(&selection->not_stack, text_string(&line), 0, NULL, 0) == 0)
            frames[i] |= MATCHES_NOT_STACK;
    }
    bool failed = !frames || !selection->matches || text_failed(&line);
    for (size_t i = 1; !failed && i < snapshot->stack_count; i++) {
        const struct stack_node *node = &snapshot->stacks[i];
        selection->matches[i] = selection->matches[node->parent] | frames[node->frame];
    }
    free(frames);
    text_free(&line);
    return failed ? error_no_memory(err) : STATUS_OK;
}

static int compare_places(const void *a, const void *b)
{
    const struct selection_pool *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static uint32_t space_of(uint16_t process, uint16_t device)
{
    return (uint32_t)process << 16 | device;
}

static struct selection_pool *find_place(const struct selection *selection, uint32_t space, uint64_t address)
{
    size_t low = 0, high = selection->pool_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct selection_pool *at = &selection->pools[middle];
        if (at->space < space || (at->space == space && at->start <= address))
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return NULL;
    struct selection_pool *found = &selection->pools[low - 1];
    return found->space == space && address - found->start < found->size ? found : NULL;
}

/* Entries that do not tell their pool have that of the segment around them, as far as the end state knows it: a segment
 * counts from the entry that made it. */
static int place_pools(struct selection *selection, const struct snapshot *snapshot, struct error *err)
{
    const struct state *end = &snapshot->end;
    const struct entries *entries = &snapshot->entries;
    free(selection->pools);
    selection->pools = malloc((end->segment_count + 1) * sizeof(*selection->pools));
    if (!selection->pools)
        return error_no_memory(err);
    selection->pool_count = end->segment_count;
    for (size_t i = 0; i < end->segment_count; i++) {
        const struct segment *segment = &end->segments[i];
        selection->pools[i] = (struct selection_pool){.start = segment->address, .size = segment->total_size,
                                                      .space = space_of(segment->process, segment->device),
                                                      .pool = segment->pool};
    }
    qsort(selection->pools, selection->pool_count, sizeof(*selection->pools), compare_places);
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->action[i] != ACTION_SEGMENT_ALLOC)
            continue;
        struct selection_pool *place =
            find_place(selection, space_of(entries->process ? entries->process[i] : 0, entries->device[i]), entries->address[i]);
        if (place && place->start == entries->address[i])
            place->since = i;
    }
    return STATUS_OK;
}

int selection_bind(struct selection *selection, const struct snapshot *snapshot, struct error *err)
{
    const struct entries *entries = &snapshot->entries;
    selection->snapshot = snapshot;
    selection->first_time = INT64_MAX;
    if (selection->has_time)
        for (size_t i = 0; i < entries->count; i++)
            if (!(entries->flags[i] & ENTRY_NO_TIME) && entries->time[i] < selection->first_time)
                selection->first_time = entries->time[i];
    if (selection->has_pool && !entries->pool) {
        int status = place_pools(selection, snapshot, err);
        if (status)
            return status;
    }
    if (selection->has_annotation && selection_ranges_bind(&selection->ranges, &selection->annotation, snapshot, err))
        return STATUS_NO_MEMORY;
    if (selection->has_stack || selection->has_not_stack)
        return match_stacks(selection, snapshot, err);
    return STATUS_OK;
}

/* --- predicates ------------------------------------------------------------------------------------------------- */

bool selection_is_everything(const struct selection *selection)
{
    return selection->device < 0 && !selection->has_stream && !selection->has_pool && !selection->has_size &&
           !selection->has_entries && !selection->has_time && !selection->has_actions && !selection->has_stack &&
           !selection->has_not_stack && !selection->has_annotation;
}

bool selection_has_stack(const struct selection *selection, uint32_t context)
{
    if (!selection->has_stack && !selection->has_not_stack)
        return true;
    uint8_t matches = selection->matches[snapshot_context_stack(selection->snapshot, context)];
    return (!selection->has_stack || (matches & MATCHES_STACK)) &&
           (!selection->has_not_stack || !(matches & MATCHES_NOT_STACK));
}

static bool is_selected_pool(const struct selection *selection, uint32_t pool)
{
    if (pool >= selection->snapshot->pool_count)
        return false; /* unknown is none of them */
    const int64_t *id = selection->snapshot->pools[pool].id;
    return id[0] == selection->pool[0] && id[1] == selection->pool[1];
}

static bool has_entry_pool(const struct selection *selection, size_t i)
{
    const struct entries *entries = &selection->snapshot->entries;
    if (entries->pool)
        return is_selected_pool(selection, entries->pool[i]);
    if (entries->action[i] > ACTION_SEGMENT_UNMAP)
        return false;
    const struct selection_pool *place =
        find_place(selection, space_of(entries->process ? entries->process[i] : 0, entries->device[i]), entries->address[i]);
    return place && i >= place->since && is_selected_pool(selection, place->pool);
}

static bool has_time(const struct selection *selection, size_t i)
{
    const struct entries *entries = &selection->snapshot->entries;
    int64_t since;
    if ((entries->flags[i] & ENTRY_NO_TIME) || __builtin_sub_overflow(entries->time[i], selection->first_time, &since))
        return false;
    return since >= selection->time_low && since <= selection->time_high;
}

bool selection_has_entry(const struct selection *selection, size_t i)
{
    const struct entries *entries = &selection->snapshot->entries;
    if (selection->device >= 0 && entries->device[i] != selection->device)
        return false;
    uint64_t number = selection->snapshot->first_entry + i;
    if (selection->has_entries && (number < selection->first_entry || number >= selection->last_entry))
        return false;
    if (selection->has_actions && !(selection->actions >> entries->action[i] & 1))
        return false;
    if (selection->has_stream && ((entries->flags[i] & ENTRY_STREAM_UNKNOWN) ||
                                  selection->snapshot->streams[entries->stream[i]] != selection->stream))
        return false;
    if (selection->has_size && (entries->size[i] < selection->size_low || entries->size[i] > selection->size_high))
        return false;
    if (selection->has_annotation && !selection->ranges.inside[i])
        return false;
    return (!selection->has_time || has_time(selection, i)) && (!selection->has_pool || has_entry_pool(selection, i)) &&
           selection_has_stack(selection, entries->context[i]);
}

bool selection_has_segment(const struct selection *selection, const struct segment *segment)
{
    return (selection->device < 0 || segment->device == selection->device) &&
           (!selection->has_stream || segment->stream == selection->stream) &&
           (!selection->has_pool || is_selected_pool(selection, segment->pool));
}

bool selection_has_block(const struct selection *selection, const struct state *state, const struct block *block)
{
    return selection_has_segment(selection, &state->segments[block->segment]) &&
           (!selection->has_size || (block->size >= selection->size_low && block->size <= selection->size_high)) &&
           (!selection->has_annotation || selection_ranges_has_block(&selection->ranges, state, block)) &&
           selection_has_stack(selection, block->context);
}

/* --- plumbing --------------------------------------------------------------------------------------------------- */

static bool holds(const char *text, size_t length, const char *const *words)
{
    for (; *words; words++)
        if (memmem(text, length, *words, strlen(*words)))
            return true;
    return false;
}

/* The runtime's and the driver's entry points, which a program has in itself where it is linked with the static runtime,
 * and what is behind them. */
static bool is_cuda_call(const char *name, size_t length)
{
    static const char *const calls[] = {
        "cudaMalloc", "cudaMallocPitch", "cudaMalloc3D", "cudaMallocArray", "cudaMalloc3DArray", "cudaMallocMipmappedArray",
        "cudaMallocManaged", "cudaMallocHost", "cudaHostAlloc", "cudaMallocAsync", "cudaMallocFromPoolAsync", "cudaFree",
        "cudaFreeAsync", "cudaFreeArray", "cudaFreeMipmappedArray", "cudaFreeHost", "cuMemAlloc", "cuMemAllocPitch",
        "cuMemAllocManaged", "cuMemAllocHost", "cuMemHostAlloc", "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemFree",
        "cuMemFreeAsync", "cuMemFreeHost", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease", "cuArrayCreate",
        "cuArrayDestroy", "__cudart", NULL};
    for (const char *const *call = calls; *call; call++) {
        size_t size = strlen(*call);
        if (length >= size && memcmp(name, *call, size) == 0 && (length == size || name[size] == '_' || call[1] == NULL))
            return true; /* cuMemAlloc_v2, cudaMallocAsync_ptsz */
    }
    return false;
}

bool selection_is_plumbing(const struct snapshot *snapshot, uint32_t number)
{
    static const char *const files[] = {"/lib/python", "<frozen ", "/aten/src/", "/c10/", "/csrc/",
                                        "/Python/", "/Objects/", "/Modules/", "../sysdeps/", "../csu/", NULL};
    static const char *const python_packages[] = {"/site-packages/", "/dist-packages/", NULL};
    static const char *const torch_packages[] = {"-packages/torch/", "-packages/torch_", NULL};
    static const char *const names[] = {"cudamem_", "c10::", "at::", "torch::autograd", "_PyEval", "PyEval", "_PyObject",
                                        "PyObject", "PyRun_", "Py_BytesMain", "__libc_start", NULL};
    static const char *const modules[] = {"/libtorch", "/libc10", "/libpython", "/bin/python", "/_ctypes.", "/libffi.so",
                                          "/libcudamem", "/libcudart", "/libcuda.so", "/libnvidia-", "/cuda/bindings/",
                                          "/cuda/_cuda/", "/libc.so", "/libdl.so", "/ld-linux", "/ld64.so", "/libpthread",
                                          "/libstdc++", "/libgcc_s", NULL};
    if (number >= snapshot->frame_count)
        return false;
    const struct frame *frame = &snapshot->frames[number];
    size_t file_length, name_length, length;
    const char *file = snapshot_object_text(snapshot, frame->filename, &file_length);
    const char *name = snapshot_object_text(snapshot, frame->name, &name_length);
    if (!frame_is_shown(name, name_length, file, file_length) || is_cuda_call(name, name_length))
        return true;
    if (frame->module != NONE32) {
        const char *path = snapshot_content_text(snapshot, snapshot->modules[frame->module].path, &length);
        if (holds(path, length, modules))
            return true;
    }
    if (holds(file, file_length, python_packages)) /* other people's packages are user code */
        return holds(file, file_length, torch_packages);
    return holds(file, file_length, files) ||
           (name_length == 8 && memcmp(name, "<module>", 8) == 0 && !file_length) || holds(name, name_length, names);
}
