/* Several snapshots become one: rows with new numbers, and one order of time.  Uses src/base, src/snapshot. */
#include "format/merge.h"

#include "base/array.h"
#include "format/merge_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct merge *merge_new(void)
{
    return calloc(1, sizeof(struct merge));
}

void merge_free(struct merge *merge)
{
    if (!merge)
        return;
    snapshot_free(merge->to);
    free(merge->settings);
    free(merge->boots);
    free(merge->sources);
    for (size_t i = 0; i < merge->name_count; i++)
        free(merge->names[i]);
    free(merge->names);
    table_free(&merge->places);
    table_free(&merge->last_settings);
    free(merge);
}

/* --- texts, stacks, numbers --------------------------------------------------------------------------------------- */

static int add_strings(struct merge_source *source)
{
    const struct snapshot *from = source->from;
    struct snapshot *to = source->merge->to;
    size_t count = strings_count(from->strings);
    source->strings = malloc((count + 1) * sizeof(*source->strings));
    if (!source->strings)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        source->strings[i] = snapshot_string(to, strings_text(from->strings, (uint32_t)i),
                                             strings_length(from->strings, (uint32_t)i));
        if (source->strings[i] == STRING_NONE)
            return STATUS_NO_MEMORY;
    }
    source->first_object = (uint32_t)to->string_object_count;
    for (size_t i = 0; i < from->string_object_count; i++)
        if (snapshot_string_object(to, source->strings[from->string_objects[i]]) == NONE32)
            return STATUS_NO_MEMORY;
    return STATUS_OK;
}

static int add_shapes(struct merge_source *source)
{
    const struct snapshot *from = source->from;
    source->shapes = calloc(from->shape_count + 1, sizeof(*source->shapes));
    if (!source->shapes)
        return STATUS_NO_MEMORY;
    for (size_t i = 1; i < from->shape_count; i++) {
        const struct shape *shape = &from->shapes[i];
        uint32_t *keys = malloc((shape->count + 1u) * sizeof(*keys));
        for (uint32_t k = 0; keys && k < shape->count; k++)
            keys[k] = shape->keys[k] < FIELD_COUNT ? shape->keys[k]
                                                   : FIELD_COUNT + source->strings[shape->keys[k] - FIELD_COUNT];
        source->shapes[i] = keys ? snapshot_shape(source->merge->to, shape->row_kind, keys, shape->count) : NONE32;
        free(keys);
        if (source->shapes[i] == NONE32)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static int add_frames(struct merge_source *source)
{
    const struct snapshot *from = source->from;
    struct snapshot *to = source->merge->to;
    source->first_module = (uint32_t)to->module_count;
    for (size_t i = 0; i < from->module_count; i++) {
        struct module module = from->modules[i];
        module.path = merge_string(source, module.path);
        if (snapshot_add_module(to, &module) == NONE32)
            return STATUS_NO_MEMORY;
    }
    source->first_frame = (uint32_t)to->frame_count;
    for (size_t i = 0; i < from->frame_count; i++) {
        struct frame frame = from->frames[i];
        frame.name = merge_object(source, frame.name);
        frame.filename = merge_object(source, frame.filename);
        frame.module += frame.module == NONE32 ? 0 : source->first_module;
        frame.shape = (uint16_t)source->shapes[frame.shape];
        if (snapshot_add_frame(to, &frame) == NONE32)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static int add_stacks(struct merge_source *source)
{
    const struct snapshot *from = source->from;
    struct snapshot *to = source->merge->to;
    source->stacks = malloc((from->stack_count + 1) * sizeof(*source->stacks));
    if (!source->stacks)
        return STATUS_NO_MEMORY;
    source->stacks[0] = STACK_EMPTY;
    for (size_t i = 1; i < from->stack_count; i++) {
        const struct stack_node *node = &from->stacks[i];
        source->stacks[i] = snapshot_push_frame(to, source->stacks[node->parent], source->first_frame + node->frame);
        if (source->stacks[i] == NONE32)
            return STATUS_NO_MEMORY;
    }
    source->first_context = (uint32_t)to->context_count;
    for (size_t i = 0; i < from->context_count; i++)
        if (snapshot_add_context(to, source->stacks[from->contexts[i]]) == NONE32)
            return STATUS_NO_MEMORY;
    return STATUS_OK;
}

static uint32_t context_of(const struct merge_source *source, uint32_t context)
{
    return context == CONTEXT_NONE ? CONTEXT_NONE : source->first_context + context;
}

static int add_numbers(struct merge_source *source)
{
    const struct snapshot *from = source->from;
    struct snapshot *to = source->merge->to;
    source->pools = malloc((from->pool_count + 1) * sizeof(*source->pools));
    source->calls = malloc((from->call_count + 1) * sizeof(*source->calls));
    if (!source->pools || !source->calls)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < from->pool_count; i++)
        if ((source->pools[i] = snapshot_pool(to, from->pools[i].id[0], from->pools[i].id[1])) == NONE32)
            return STATUS_NO_MEMORY;
    for (size_t i = 0; i < from->call_count; i++)
        if ((source->calls[i] = snapshot_call(to, snapshot_content_text(from, from->calls[i], NULL))) == NONE32)
            return STATUS_NO_MEMORY;
    return STATUS_OK;
}

/* --- processes and their clocks ----------------------------------------------------------------------------------- */

static struct merge_boot *find_boot(struct merge *merge, uint32_t boot_id)
{
    for (size_t i = 0; i < merge->boot_count; i++)
        if (merge->boots[i].boot_id == boot_id)
            return &merge->boots[i];
    if (array_reserve(&merge->boots, &merge->boot_capacity, merge->boot_count + 1, sizeof(*merge->boots)))
        return NULL;
    merge->boots[merge->boot_count] = (struct merge_boot){.boot_id = boot_id};
    return &merge->boots[merge->boot_count++];
}

/* What to add to the times of a process: how far the real-time clock was set since the first one of its boot. */
static int find_shift(struct merge *merge, const struct process *process, int64_t *shift)
{
    int64_t offset, step;
    *shift = 0;
    if (process->boot_id == STRING_NONE && process->host == STRING_NONE) {
        merge->facts.nowhere++;
        return STATUS_OK;
    }
    struct merge_boot *boot = find_boot(merge, process->boot_id != STRING_NONE ? process->boot_id : process->host);
    if (!boot)
        return STATUS_NO_MEMORY;
    if (process->boot_id == STRING_NONE || process->clock_monotonic <= 0 || process->clock_realtime <= 0)
        return STATUS_OK;
    offset = process->clock_realtime - process->clock_monotonic; /* both positive */
    if (!boot->has_clock) {
        boot->has_clock = true;
        boot->offset = offset;
    }
    if (__builtin_sub_overflow(boot->offset, offset, &step) || (step < MERGE_STEP && step > -MERGE_STEP))
        return STATUS_OK;
    merge->facts.moved++;
    int64_t size = step < 0 ? -step : step;
    merge->facts.largest_step = size > merge->facts.largest_step ? size : merge->facts.largest_step;
    *shift = step;
    return STATUS_OK;
}

/* A time that is known, moved. */
static int64_t moved_time(int64_t time, int64_t shift)
{
    int64_t result;
    return time && !__builtin_add_overflow(time, shift, &result) ? result : time;
}

/* Two looks at one process are no two processes: their memory would count twice. */
static int refuse_twice(const struct merge *merge, const struct process *process, const char *name, struct error *err)
{
    for (size_t i = 0; process->pid > 0 && process->start_time && i < merge->to->process_count; i++) {
        const struct process *other = &merge->to->processes[i];
        if (other->pid == process->pid && other->start_time == process->start_time && other->host == process->host &&
            other->boot_id == process->boot_id)
            return error_set(err, STATUS_INPUT, "%s is of the same process as %s (number %" PRId64 "); merge one of them",
                             name, merge->names[merge->sources[i]], process->pid);
    }
    return STATUS_OK;
}

static int add_processes(struct merge_source *source, const char *name, struct error *err)
{
    struct merge *merge = source->merge;
    const struct snapshot *from = source->from;
    struct process *added = malloc(from->process_count * sizeof(*added));
    source->first_process = merge->to->process_count;
    source->shifts = calloc(from->process_count, sizeof(*source->shifts));
    int status = added && source->shifts ? STATUS_OK : error_no_memory(err);
    for (size_t i = 0; i < from->process_count && !status; i++) {
        struct process *process = &added[i];
        *process = from->processes[i];
        process->program = merge_string(source, process->program);
        process->host = merge_string(source, process->host);
        process->arguments = merge_string(source, process->arguments);
        process->boot_id = merge_string(source, process->boot_id);
        process->driver = merge_string(source, process->driver);
        if (find_shift(merge, process, &source->shifts[i]))
            status = error_no_memory(err);
        process->start_time = moved_time(process->start_time, source->shifts[i]);
        process->end_time = moved_time(process->end_time, source->shifts[i]);
        process->clock_realtime = moved_time(process->clock_realtime, source->shifts[i]);
        if (!status)
            status = refuse_twice(merge, process, name, err);
    }
    for (size_t i = 0; i < from->process_count && !status; i++) {
        if (array_reserve(&merge->sources, &merge->source_capacity, merge->to->process_count + 1, sizeof(*merge->sources)))
            status = error_no_memory(err);
        else if (snapshot_add_process(merge->to, &added[i]) == NONE32)
            status = error_set(err, STATUS_INPUT, "%s: more processes than a snapshot can hold", name);
        else
            merge->sources[merge->to->process_count - 1] = (uint32_t)merge->name_count - 1;
    }
    free(added);
    return status;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Every place that rows name has a device, so that formats without processes can number them. */
static int need_device(struct merge *merge, uint16_t process, uint16_t ordinal)
{
    uint64_t place = (uint64_t)process << 16 | ordinal;
    if (table_has(&merge->places, place))
        return STATUS_OK;
    return snapshot_device(merge->to, process, ordinal) == NONE32 || table_set(&merge->places, place, 1)
               ? STATUS_NO_MEMORY : STATUS_OK;
}

static int add_devices(struct merge_source *source)
{
    struct merge *merge = source->merge;
    for (size_t i = 0; i < source->from->device_count; i++) {
        struct device device = source->from->devices[i];
        device.process = (uint16_t)(device.process + source->first_process);
        device.name = merge_string(source, device.name);
        if (need_device(merge, device.process, device.ordinal))
            return STATUS_NO_MEMORY;
        merge->to->devices[snapshot_device(merge->to, device.process, device.ordinal)] = device;
    }
    return STATUS_OK;
}

static int add_entries(struct merge_source *source)
{
    struct merge *merge = source->merge;
    const struct snapshot *from = source->from;
    uint16_t last_process = UINT16_MAX, last_device = UINT16_MAX;
    bool any_time = false;
    source->first_entry = merge->to->entries.count;
    for (size_t i = 0; i < from->entries.count; i++) {
        struct entry entry = snapshot_entry(from, i);
        bool has_time = !(entry.flags & ENTRY_NO_TIME);
        any_time |= has_time;
        entry.time = has_time ? moved_time(entry.time, source->shifts[entry.process]) : entry.time;
        entry.process = (uint16_t)(entry.process + source->first_process);
        entry.call = (uint16_t)source->calls[entry.call];
        entry.context = context_of(source, entry.context);
        entry.shape = (uint16_t)source->shapes[entry.shape];
        entry.compile_context = merge_object(source, entry.compile_context);
        entry.user_metadata = merge_object(source, entry.user_metadata);
        entry.pool = entry.pool == NONE32 ? NONE32 : source->pools[entry.pool];
        if (entry.process != last_process || entry.device != last_device) {
            last_process = entry.process;
            last_device = entry.device;
            if (need_device(merge, last_process, last_device))
                return STATUS_NO_MEMORY;
        }
        if (snapshot_add_entry(merge->to, &entry))
            return STATUS_NO_MEMORY;
    }
    merge->facts.untimed += from->entries.count && !any_time;
    return STATUS_OK;
}

static int add_state(struct merge_source *source)
{
    const struct state *from = &source->from->end;
    struct state *to = &source->merge->to->end;
    source->first_segment = to->segment_count;
    source->first_block = to->block_count;
    to->exact = to->exact && from->exact;
    for (size_t s = 0; s < from->segment_count; s++) {
        struct segment segment = from->segments[s];
        uint32_t first = segment.first_block, count = segment.block_count;
        segment.process = (uint16_t)(segment.process + source->first_process);
        segment.context = context_of(source, segment.context);
        segment.pool = segment.pool == NONE32 ? NONE32 : source->pools[segment.pool];
        segment.shape = (uint16_t)source->shapes[segment.shape];
        if (need_device(source->merge, segment.process, segment.device) || state_add_segment(to, &segment))
            return STATUS_NO_MEMORY;
        for (uint32_t b = 0; b < count; b++) {
            struct block block = from->blocks[first + b];
            block.context = context_of(source, block.context);
            block.shape = (uint16_t)source->shapes[block.shape];
            if (state_add_block(to, &block))
                return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

static int add_annotations(struct merge_source *source)
{
    const struct snapshot *from = source->from;
    struct snapshot *to = source->merge->to;
    source->first_annotation = to->annotation_count;
    for (size_t i = 0; i < from->annotation_count; i++) {
        struct annotation annotation = from->annotations[i];
        annotation.time = moved_time(annotation.time, source->shifts[annotation.process]);
        annotation.process = (uint16_t)(annotation.process + source->first_process);
        annotation.name = merge_object(source, annotation.name);
        annotation.shape = (uint16_t)source->shapes[annotation.shape];
        if (snapshot_add_annotation(to, &annotation) == NONE32)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static int begin(struct merge *merge, const struct snapshot *from, const char *name, struct error *err)
{
    static const char *const words[] = {"a recording", "a snapshot of PyTorch", "a log of RMM"};
    if (!merge->to) {
        merge->to = snapshot_new(from->source);
        if (!merge->to)
            return error_no_memory(err);
        merge->to->process_count = 0; /* the sources have them */
    } else if (merge->to->source != from->source) {
        return error_set(err, STATUS_INPUT, "%s is %s and %s is %s: only files of one kind can be merged",
                         merge->names[0], words[merge->to->source], name, words[from->source]);
    }
    char *copy = strdup(name);
    if (!copy || array_reserve(&merge->names, &merge->name_capacity, merge->name_count + 1, sizeof(*merge->names))) {
        free(copy);
        return error_no_memory(err);
    }
    merge->names[merge->name_count++] = copy;
    return STATUS_OK;
}

/* The sums must stay numbers of rows. */
static bool fits(const struct snapshot *to, const struct snapshot *from)
{
    return (uint64_t)to->frame_count + from->frame_count < NONE32 - 1 &&
           (uint64_t)to->context_count + from->context_count < NONE32 - 1 &&
           (uint64_t)to->string_object_count + from->string_object_count < NONE32 - 1 &&
           (uint64_t)to->module_count + from->module_count < NONE32 - 1 &&
           (uint64_t)to->entries.count + from->entries.count < NONE32 - 1;
}

static int add_rows(struct merge_source *source, const char *name, struct error *err)
{
    if (add_strings(source) || add_shapes(source) || add_frames(source) || add_stacks(source) || add_numbers(source))
        return error_no_memory(err);
    int status = add_processes(source, name, err);
    if (status)
        return status;
    if (add_devices(source) || add_entries(source) || add_state(source) || add_annotations(source) ||
        merge_add_values(source))
        return error_no_memory(err);
    return STATUS_OK;
}

int merge_add(struct merge *merge, const struct snapshot *from, const char *name, struct error *err)
{
    struct merge_source source = {.merge = merge, .from = from};
    int status = begin(merge, from, name, err);
    if (status)
        return status;
    if (!fits(merge->to, from))
        return error_set(err, STATUS_NO_MEMORY, "%s: together the files have more rows than a snapshot can hold", name);
    status = add_rows(&source, name, err);
    free(source.strings);
    free(source.stacks);
    free(source.pools);
    free(source.calls);
    free(source.shapes);
    free(source.shifts);
    return status;
}

int merge_finish(struct merge *merge, struct snapshot **result, struct merge_facts *facts, struct error *err)
{
    struct snapshot *to = merge->to;
    *result = NULL;
    if (!to)
        return error_set(err, STATUS_USAGE, "nothing to merge");
    to->end.moment = to->entries.count;
    to->trace_count = (uint32_t)to->device_count;
    if (merge_settle_settings(merge) || snapshot_order_processes(to))
        return error_no_memory(err);
    if (!snapshot_is_valid(to, err))
        return STATUS_INPUT;
    *facts = merge->facts;
    facts->hosts = merge->boot_count;
    *result = to;
    merge->to = NULL;
    return STATUS_OK;
}
