/* The sentence that says the cause, and the numbers that it stands on.  May use src/analyze and src/base. */
#include "render/explain_words.h"

#include <stdio.h>
#include <string.h>

/* Sizes that the sentences name, ready to print. */
struct sizes {
    char asked[SIZE_TEXT], free[SIZE_TEXT], largest[SIZE_TEXT], left[SIZE_TEXT], reserved[SIZE_TEXT], used[SIZE_TEXT],
        lacks[SIZE_TEXT], room[SIZE_TEXT], segment[SIZE_TEXT], growing[SIZE_TEXT], outside[SIZE_TEXT], pending[SIZE_TEXT],
        device_free[SIZE_TEXT], total[SIZE_TEXT];
};

static uint64_t most_of(const struct explain *explain)
{
    return explain->room.kind == EXPLAIN_ROOM_DEVICE && explain->outside.total ? explain->outside.total : explain->room.high;
}

static struct sizes sizes_of(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    const struct explain_memory *memory = &explain->memory;
    uint64_t left = explain->room.low > memory->reserved ? explain->room.low - memory->reserved : 0;
    struct sizes sizes;
    explain_size(writer, explain->request.size, sizes.asked);
    explain_size(writer, memory->free, sizes.free);
    explain_size(writer, memory->largest_hole, sizes.largest);
    explain_size(writer, left, sizes.left);
    explain_size(writer, memory->reserved, sizes.reserved);
    explain_size(writer, memory->allocated + memory->pending, sizes.used);
    explain_size(writer, explain->lacks, sizes.lacks);
    explain_size(writer, most_of(explain), sizes.room);
    explain_size(writer, explain->request.segment_size, sizes.segment);
    explain_size(writer, explain->growing_bytes, sizes.growing);
    explain_size(writer, explain->outside.bytes, sizes.outside);
    explain_size(writer, memory->pending, sizes.pending);
    explain_size(writer, explain->request.device_free, sizes.device_free);
    explain_size(writer, explain->outside.total, sizes.total);
    return sizes;
}

static const char *room_name(const struct explain *explain)
{
    switch (explain->room.kind) {
    case EXPLAIN_ROOM_TOLD:
    case EXPLAIN_ROOM_RECORDED:
        return "the memory limit";
    case EXPLAIN_ROOM_INFERRED:
        return "a memory limit that the recording does not name";
    case EXPLAIN_ROOM_DEVICE:
    case EXPLAIN_ROOM_UNKNOWN:
        break;
    }
    return "the device";
}

/* What was left to take: of the device, or under the limit. */
static void add_left(const struct explain_writer *writer, const struct sizes *sizes)
{
    if (writer->explain->room.kind == EXPLAIN_ROOM_INFERRED)
        text_printf(writer->text, "a new segment of %s went beyond %s", sizes->segment, room_name(writer->explain));
    else if (writer->explain->room.kind == EXPLAIN_ROOM_DEVICE)
        text_printf(writer->text, "the device had %s left, too little for a new segment of %s", sizes->device_free,
                    sizes->segment);
    else
        text_printf(writer->text, "%s left %s, too little for a new segment of %s", room_name(writer->explain),
                    sizes->left, sizes->segment);
}

static void add_apart(const struct explain_writer *writer, const struct sizes *sizes)
{
    const struct explain *explain = writer->explain;
    const struct explain_sum *reasons = explain->reasons;
    struct text *text = writer->text;
    char size[SIZE_TEXT];
    switch (explain->cause) {
    case EXPLAIN_OTHER_STREAM:
        explain_size(writer, reasons[EXPLAIN_HOLE_OTHER_STREAM].largest, size);
        text_printf(text, "the memory belongs to another stream.  %s were asked for on stream %" PRId64 "; a hole of %s was "
                    "free, of another stream, and a stream's holes serve that stream alone; ", sizes->asked,
                    explain->request.stream, size);
        break;
    case EXPLAIN_OTHER_POOL:
        explain_size(writer, reasons[EXPLAIN_HOLE_OTHER_POOL].largest, size);
        text_printf(text, "the memory belongs to another pool.  %s were asked for; a hole of %s was free, in another memory "
                    "pool (a MemPool or a graph's), and a pool's holes serve that pool alone; ", sizes->asked, size);
        break;
    case EXPLAIN_UNSPLITTABLE:
        explain_size(writer, reasons[EXPLAIN_HOLE_UNSPLITTABLE].largest, size);
        text_printf(text, "max_split_size_mb.  %s were asked for; a hole of %s was free, which that setting keeps from "
                    "being cut; ", sizes->asked, size);
        break;
    default:
        text_printf(text, "fragmentation.  %s were asked for and %s were free inside the allocator, but in %" PRIu64
                    " hole%s, the largest of %s; ", sizes->asked, sizes->free, explain->memory.holes,
                    explain_plural(explain->memory.holes), sizes->largest);
    }
    add_left(writer, sizes);
    text_char(text, '.');
}

static void add_growth(const struct explain_writer *writer, const struct sizes *sizes)
{
    const struct explain_stack *row = &writer->explain->growing[0];
    text_printf(writer->text, "memory that only grew, which looks like a leak.  %s were asked for, and %s lacked; %s were "
                "allocated over the whole recording and kept, most by ", sizes->asked, sizes->lacks, sizes->growing);
    explain_site(writer, row->context, row->is_before);
    text_char(writer->text, '.');
}

static void add_full(const struct explain_writer *writer, const struct sizes *sizes)
{
    const struct explain *explain = writer->explain;
    if (explain->room.kind == EXPLAIN_ROOM_DEVICE)
        text_printf(writer->text, "the memory was in use.  %s were asked for and the device had %s free; ", sizes->asked,
                    sizes->device_free);
    else
        text_printf(writer->text, "the memory was in use, up to %s.  %s were asked for; ", room_name(explain), sizes->asked);
    if (explain->is_cached)
        text_printf(writer->text, "%s were reserved, of which %s were in use and %s free", sizes->reserved, sizes->used,
                    sizes->free);
    else
        text_printf(writer->text, "the program held %s", sizes->reserved);
    text_printf(writer->text, "; %s%s more would have been needed.",
                explain->room.kind == EXPLAIN_ROOM_INFERRED ? "up to " : "", sizes->lacks);
}

static void add_cause(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    struct text *text = writer->text;
    const struct sizes sizes = sizes_of(writer);
    switch (explain->cause) {
    case EXPLAIN_TOO_BIG:
        text_printf(text, "the request is too big.  %s were asked for; with nothing else allocated there would be %s%s.",
                    sizes.asked, explain->room.kind == EXPLAIN_ROOM_INFERRED ? "less than " : "", sizes.room);
        return;
    case EXPLAIN_PENDING:
        text_printf(text, "frees that were not complete.  %s were asked for; %s were freed and waited for other streams "
                    "(record_stream); without that it would have fitted.", sizes.asked, sizes.pending);
        return;
    case EXPLAIN_OUTSIDE:
        text_printf(text, "memory outside the %s.  %s were asked for; the device had %s free of %s, and %s were held outside: "
                    "more than the %s here.", explain->is_cached ? "allocator" : "program's own allocations", sizes.asked,
                    sizes.device_free, sizes.total, sizes.outside, sizes.reserved);
        return;
    case EXPLAIN_GROWTH:
        add_growth(writer, &sizes);
        return;
    case EXPLAIN_FULL:
        add_full(writer, &sizes);
        return;
    case EXPLAIN_REFUSED:
        text_printf(text, "the driver refused.  %s were asked for, and the device had %s free: a limit of the driver, of a MIG "
                    "slice or of the container is in the way, or a device error.", sizes.asked, sizes.device_free);
        return;
    case EXPLAIN_UNKNOWN:
        text_printf(text, "%s were asked for and refused; the recording does not tell how much there was.", sizes.asked);
        return;
    default:
        add_apart(writer, &sizes);
    }
}

/* What would have helped, as far as replays say so: the last words of the first paragraph. */
static void add_remedy(const struct explain_writer *writer)
{
    const struct explain_settings *settings = &writer->explain->settings;
    if (settings->judged != EXPLAIN_JUDGED)
        return;
    for (size_t i = 0; i < settings->count; i++)
        if (settings->trials[i].serves) {
            text_printf(writer->text, "  With %s it would%s have fitted.",
                        *settings->trials[i].conf ? settings->trials[i].conf : "the default settings",
                        settings->trials[i].exact ? "" : ", approximately,");
            return;
        }
    if (settings->searched)
        text_printf(writer->text, "  With none of the %zu settings tried would it have fitted.", settings->tried);
}

static void quiet_sentence(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    const struct explain_memory *memory = &explain->memory;
    const struct sizes sizes = sizes_of(writer);
    char first[SIZE_TEXT];
    text_printf(writer->text, "No request failed here.  At @%s device %u had ", writer->words->moment, explain->device);
    if (explain->is_cached)
        text_printf(writer->text, "%s reserved: %s in use, %s free in %" PRIu64 " hole%s.", sizes.reserved, sizes.used,
                    sizes.free, memory->holes, explain_plural(memory->holes));
    else
        text_printf(writer->text, "%s allocated.", sizes.reserved);
    if (explain->holder_count) {
        text_printf(writer->text, "  Most, %s, was allocated by ", explain_size(writer, explain->holders[0].bytes, first));
        explain_site(writer, explain->holders[0].context, explain->holders[0].is_before);
        text_char(writer->text, '.');
    }
}

void explain_sentence(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    if (!explain->is_failure) {
        quiet_sentence(writer);
    } else {
        text_printf(writer->text, "Out of memory on device %u, at entry %" PRIu64 ": ", explain->device,
                    explain->request.entry);
        add_cause(writer);
        add_remedy(writer);
    }
    text_char(writer->text, '\n');
}

/* --- numbers ----------------------------------------------------------------------------------------------------- */

static void request_lines(const struct explain_writer *writer)
{
    const struct explain_request *request = &writer->explain->request;
    text_printf(writer->text, "\nThe request%s\n  by ", request->number > 1 ? " (not the first that failed)" : "");
    explain_site(writer, request->context, false);
    text_char(writer->text, '\n');
    explain_frames(writer, request->context);
    if (request->is_rounded)
        explain_bytes_line(writer, "asked", request->size, "rounded up as the allocator does; %s pool",
                           request->is_small ? "small" : "large");
    else
        explain_bytes_line(writer, "asked", request->size, "as the program asked");
    if (request->has_stream && writer->explain->is_cached)
        text_printf(writer->text, "  stream %" PRId64 "%s\n", request->stream, request->stream ? "" : " (the default one)");
    if (request->has_pool && (request->pool.id[0] || request->pool.id[1]))
        text_printf(writer->text, "  memory pool %" PRId64 ":%" PRId64 "\n", request->pool.id[0], request->pool.id[1]);
    if (request->is_rounded)
        explain_bytes_line(writer, "new segment", request->segment_size, "what the device was asked for, as no hole served");
}

static void room_lines(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    const struct explain_room *room = &explain->room;
    char low[SIZE_TEXT], high[SIZE_TEXT];
    if (explain->request.has_device_free)
        explain_bytes_line(writer, "device free", explain->request.device_free, "%s",
                           room->kind == EXPLAIN_ROOM_DEVICE ? "of the device: too little, that is why it failed"
                                                             : "of the device: enough, that is not why it failed");
    if (explain->outside.total)
        explain_bytes_line(writer, "device total", explain->outside.total, "%s", "");
    if (room->kind == EXPLAIN_ROOM_TOLD || room->kind == EXPLAIN_ROOM_RECORDED)
        explain_bytes_line(writer, "limit", room->low, "%s", room->kind == EXPLAIN_ROOM_TOLD
                               ? "as told by --memory-limit: reserved and a new segment would go beyond it"
                               : "as the recording says: reserved and a new segment would go beyond it");
    if (room->kind == EXPLAIN_ROOM_INFERRED)
        explain_line(writer, "limit", "", "of the process, as by torch.cuda.set_per_process_memory_fraction(): not told, but "
                     "%s was reserved once, and %s would have been too much",
                     explain_size(writer, room->low, low), explain_size(writer, room->high, high));
    if (room->refuted)
        text_add(writer->text, "  --memory-limit does not explain this failure: it is left out of account\n");
}

static void allocator_lines(const struct explain_writer *writer)
{
    const struct explain_memory *memory = &writer->explain->memory;
    char size[SIZE_TEXT];
    explain_bytes_line(writer, "reserved", memory->reserved, "taken from the device, in %" PRIu64 " segment%s",
                       memory->segments, explain_plural(memory->segments));
    explain_bytes_line(writer, "- allocated", memory->allocated, "in use: %" PRIu64 " block%s; %s were requested",
                       memory->blocks, explain_plural(memory->blocks), explain_size(writer, memory->requested, size));
    explain_bytes_line(writer, "- pending", memory->pending, "freed, but other streams may still use it: %" PRIu64 " block%s",
                       memory->pending_blocks, explain_plural(memory->pending_blocks));
    explain_bytes_line(writer, "- free", memory->free, "cached: %" PRIu64 " hole%s; %.1f%% of what is reserved", memory->holes,
                       explain_plural(memory->holes),
                       memory->reserved ? 100 * (double)memory->free / (double)memory->reserved : 0);
    explain_bytes_line(writer, "largest hole", memory->largest_hole, "%s", "of any stream and pool");
    explain_bytes_line(writer, "releasable", memory->releasable, "of what is free: in segments that hold nothing else%s",
                       memory->releasable || !writer->explain->is_failure ? "" : ", so a flush gives nothing back");
}

void explain_numbers(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    const struct explain_memory *memory = &explain->memory;
    if (explain->is_failure) {
        request_lines(writer);
        text_printf(writer->text, "\nThe memory of device %u then\n", explain->device);
        room_lines(writer);
    } else {
        text_printf(writer->text, "\nThe memory of device %u then\n", explain->device);
    }
    if (explain->is_cached)
        allocator_lines(writer);
    else
        explain_bytes_line(writer, "allocated", memory->reserved, "by the program: %" PRIu64 " allocation%s", memory->segments,
                           explain_plural(memory->segments));
}
