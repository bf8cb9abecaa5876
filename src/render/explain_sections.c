/* The explanation's lists: holes, what pins them, settings, memory outside, who holds it.  May use src/analyze and
 * src/base. */
#include "render/explain_words.h"

#include <stdio.h>
#include <string.h>

static const struct block *block_of(const struct explain_writer *writer, uint32_t number)
{
    return &writer->explain->snapshot->end.blocks[number];
}

static const struct segment *segment_of(const struct explain_writer *writer, uint32_t block)
{
    return &writer->explain->snapshot->end.segments[block_of(writer, block)->segment];
}

static void block_site(const struct explain_writer *writer, uint32_t number)
{
    const struct block *block = block_of(writer, number);
    explain_site(writer, block->context, block->flags & BLOCK_BEFORE_RECORDING);
}

static void more_line(const struct explain_writer *writer, uint64_t shown, uint64_t count, const char *what)
{
    if (count > shown)
        text_printf(writer->text, "  and %" PRIu64 " more %s (-n shows more)\n", count - shown, what);
}

/* --- holes ------------------------------------------------------------------------------------------------------- */

static const char *reason_text(enum explain_hole_reason reason)
{
    static const char *const texts[EXPLAIN_HOLE_REASONS] = {
        [EXPLAIN_HOLE_TOO_SMALL] = "right stream and pool, too small",
        [EXPLAIN_HOLE_OTHER_STREAM] = "of another stream",
        [EXPLAIN_HOLE_OTHER_POOL] = "of another memory pool",
        [EXPLAIN_HOLE_OTHER_CLASS] = "of the small pool's segments or, for a small request, of the large one's",
        [EXPLAIN_HOLE_UNSPLITTABLE] = "large enough, but max_split_size_mb forbids to cut it",
        [EXPLAIN_HOLE_FITS] = "would have served, as far as this recording tells"};
    return texts[reason];
}

static void end_of_hole(const struct explain_writer *writer, const char *word, uint32_t block)
{
    char size[SIZE_TEXT];
    text_printf(writer->text, "      %s ", word);
    if (block == NONE32) {
        text_add(writer->text, "the segment's end\n");
        return;
    }
    text_printf(writer->text, "%s of ", explain_size(writer, block_of(writer, block)->size, size));
    block_site(writer, block);
    text_char(writer->text, '\n');
    explain_frames(writer, block_of(writer, block)->context);
}

static void one_hole(const struct explain_writer *writer, const struct explain_hole *hole)
{
    const struct block *block = block_of(writer, hole->block);
    char size[SIZE_TEXT];
    text_printf(writer->text, "  %s at 0x%" PRIx64 ", stream %" PRId64 ": %s; it ends at\n",
                explain_size(writer, block->size, size), block->address, segment_of(writer, hole->block)->stream,
                reason_text(hole->reason));
    end_of_hole(writer, "below", hole->before);
    end_of_hole(writer, "above", hole->after);
}

void explain_hole_section(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    char bytes[SIZE_TEXT], largest[SIZE_TEXT];
    size_t large = 0;
    if (!explain->memory.holes)
        return;
    text_add(writer->text, "\nWhy none of the holes served\n");
    for (int reason = 0; reason < EXPLAIN_HOLE_REASONS; reason++) {
        const struct explain_sum *sum = &explain->reasons[reason];
        if (sum->count)
            text_printf(writer->text, "  %" PRIu64 " hole%s, %s, the largest %s: %s\n", sum->count, explain_plural(sum->count),
                        explain_size(writer, sum->bytes, bytes), explain_size(writer, sum->largest, largest),
                        reason_text((enum explain_hole_reason)reason));
    }
    while (large < explain->memory.holes && block_of(writer, explain->holes[large].block)->size >= explain->request.size / 4)
        large++;
    if (!large)
        return;
    text_printf(writer->text, "\nHoles of a quarter of the request and more: %zu\n", large);
    for (size_t i = 0; i < large && i < writer->words->rows; i++)
        one_hole(writer, &explain->holes[i]);
    more_line(writer, writer->words->rows, large, "holes");
}

/* --- what pins them ---------------------------------------------------------------------------------------------- */

void explain_pin_section(const struct explain_writer *writer)
{
    const struct explain_pins *pins = &writer->explain->pins;
    char bytes[SIZE_TEXT], opened[SIZE_TEXT];
    if (!pins->count || !writer->explain->is_cached)
        return;
    explain_size(writer, pins->bytes, bytes);
    explain_size(writer, pins->opened, opened);
    text_add(writer->text, "\nThe least that was in the way\n");
    if (pins->segments)
        text_printf(writer->text, "  without %s block%s, %s in all, %zu segment%s of %s would be empty and could be given "
                    "back:\n", pins->count == 1 ? "this" : "these", explain_plural(pins->count), bytes, pins->segments,
                    explain_plural(pins->segments), opened);
    else
        text_printf(writer->text, "  without %s block%s, %s in all, there would be a hole of %s, large enough:\n",
                    pins->count == 1 ? "this" : "these", explain_plural(pins->count), bytes, opened);
    for (size_t i = 0; i < pins->count && i < writer->words->rows; i++) {
        const struct block *block = block_of(writer, pins->blocks[i]);
        text_printf(writer->text, "  %s at 0x%" PRIx64 " by ", explain_size(writer, block->size, bytes), block->address);
        block_site(writer, pins->blocks[i]);
        text_char(writer->text, '\n');
        explain_frames(writer, block->context);
    }
    more_line(writer, writer->words->rows, pins->count, "blocks");
}

/* --- settings ---------------------------------------------------------------------------------------------------- */

static const char *shown(const char *conf)
{
    return *conf ? conf : "the default settings";
}

static void export_line(const struct explain_writer *writer, const char *conf)
{
    const char *quote = strpbrk(conf, "[]>") ? "'" : "";
    text_printf(writer->text, "  export %s=%s%s%s\n",
                writer->explain->settings.is_ours ? "CUDAMEM_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF", quote, conf, quote);
}

static void one_trial(const struct explain_writer *writer, const struct explain_trial *trial)
{
    char peak[SIZE_TEXT];
    const char *mark = trial->exact ? "" : " (approximate)";
    explain_size(writer, trial->peak_reserved, peak);
    text_add(writer->text, "  ");
    text_add_printable(writer->text, trial->conf, strlen(trial->conf));
    if (!writer->explain->is_failure)
        text_printf(writer->text, ": at most %s reserved%s\n", peak, mark);
    else if (trial->serves)
        text_printf(writer->text, ": it would have fitted, with at most %s reserved%s\n", peak, mark);
    else
        text_printf(writer->text, ": it would have failed, too%s\n", mark);
}

static const struct explain_trial *chosen(const struct explain *explain)
{
    const struct explain_settings *settings = &explain->settings;
    for (size_t i = 0; i < settings->count; i++)
        if (settings->trials[i].serves && (explain->is_failure || settings->trials[i].peak_reserved < settings->recorded_peak))
            return &settings->trials[i];
    return NULL;
}

static void judged_settings(const struct explain_writer *writer)
{
    const struct explain_settings *settings = &writer->explain->settings;
    const struct explain_trial *best = chosen(writer->explain);
    char size[SIZE_TEXT];
    text_add(writer->text, "  recorded: ");
    text_add_printable(writer->text, shown(settings->recorded), strlen(shown(settings->recorded)));
    text_printf(writer->text, "; at most %s reserved\n", explain_size(writer, settings->recorded_peak, size));
    for (size_t i = 0; i < settings->count; i++)
        one_trial(writer, &settings->trials[i]);
    if (settings->searched)
        text_printf(writer->text, "  %zu settings were tried%s\n", settings->tried,
                    best ? "" : writer->explain->is_failure ? "; none would have served it" : "; none is worth a change");
    else
        text_add(writer->text, "  the recording is long: cudamem tune tries more settings\n");
    if (settings->least_conf && !best)
        text_printf(writer->text, "  everything would have fitted in about %s, perhaps in less, with %s\n",
                    explain_size(writer, settings->least_limit, size), shown(settings->least_conf));
    if (best)
        export_line(writer, best->conf);
}

void explain_settings_section(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    const struct explain_settings *settings = &explain->settings;
    char size[SIZE_TEXT];
    if (settings->judged == EXPLAIN_JUDGED_NOT_CACHING || settings->judged == EXPLAIN_JUDGED_NOTHING)
        return;
    if (explain->is_failure)
        text_printf(writer->text, "\nOther settings, replayed with no more than %s to reserve\n",
                    explain_size(writer, settings->limit, size));
    else
        text_add(writer->text, "\nOther settings, replayed\n");
    if (settings->judged == EXPLAIN_JUDGED_OTHERWISE)
        text_add(writer->text, "  not judged: replayed under the recorded settings the request does not fail\n");
    else
        judged_settings(writer);
}

/* --- outside ----------------------------------------------------------------------------------------------------- */

static void outside_rows(const struct explain_writer *writer)
{
    const struct explain_outside *outside = &writer->explain->outside;
    for (size_t i = 0; i < outside->count && i < writer->words->rows; i++)
        explain_bytes_line(writer, outside->rows[i].name, outside->rows[i].bytes, "%" PRIu64 " allocation%s",
                           outside->rows[i].segments, explain_plural(outside->rows[i].segments));
    more_line(writer, writer->words->rows, outside->count, "owners");
    if (outside->others)
        explain_bytes_line(writer, "other processes", outside->others, "of this file, on the same GPU");
}

void explain_outside_section(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    const struct explain_outside *outside = &explain->outside;
    text_printf(writer->text, "\nMemory outside the %s\n", explain->is_cached ? "allocator" : "program's own allocations");
    if (outside->is_known)
        explain_bytes_line(writer, "outside", outside->bytes, "total - device free - %s",
                           explain->is_cached ? "reserved" : "allocated");
    outside_rows(writer);
    if (outside->is_known)
        explain_bytes_line(writer, "not seen", outside->rest, "contexts, the driver's own, processes that were not recorded");
    else if (outside->has_sample)
        explain_bytes_line(writer, "not seen", outside->sample_rest, "contexts, the driver's own, processes that were not "
                           "recorded; as last seen, not at this moment");
    else
        text_printf(writer->text, "  not known: the recording does not tell how large the device is%s\n",
                    explain->snapshot->source == SOURCE_TORCH
                        ? "; contexts, cuBLAS, NCCL and other processes are not in it (cudamem record sees them)" : "");
}

/* --- who holds it ------------------------------------------------------------------------------------------------ */

static void growing_rows(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    char size[SIZE_TEXT], quarter[SIZE_TEXT];
    text_add(writer->text, "\nWhat only grew, quarter by quarter of the recording, and was hardly ever freed: a leak?\n");
    if (!explain->growing_count)
        text_add(writer->text, "  nothing\n");
    for (size_t i = 0; i < explain->growing_count && i < writer->words->rows; i++) {
        const struct explain_stack *row = &explain->growing[i];
        text_printf(writer->text, "  %s in %" PRIu64 " blocks by ", explain_size(writer, row->bytes, size), row->blocks);
        explain_site(writer, row->context, row->is_before);
        text_add(writer->text, "; requested");
        for (unsigned q = 0; q < EXPLAIN_QUARTERS; q++)
            text_printf(writer->text, "%s %s", q ? "," : "", explain_size(writer, row->quarters[q], quarter));
        text_char(writer->text, '\n');
        explain_frames(writer, row->context);
    }
    more_line(writer, writer->words->rows, explain->growing_count, "stacks");
}

void explain_holder_section(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    uint64_t all = explain->memory.allocated + explain->memory.pending;
    char size[SIZE_TEXT];
    if (!explain->holder_count)
        return;
    text_add(writer->text, "\nWho held the memory\n");
    for (size_t i = 0; i < explain->holder_count && i < writer->words->rows; i++) {
        const struct explain_stack *row = &explain->holders[i];
        text_printf(writer->text, "  %s (%.1f%%) in %" PRIu64 " block%s by ", explain_size(writer, row->bytes, size),
                    all ? 100 * (double)row->bytes / (double)all : 0, row->blocks, explain_plural(row->blocks));
        explain_site(writer, row->context, row->is_before);
        text_char(writer->text, '\n');
        explain_frames(writer, row->context);
    }
    more_line(writer, writer->words->rows, explain->holder_count, "stacks");
    if (explain->has_entries)
        growing_rows(writer);
}

void explain_unknown_section(const struct explain_writer *writer)
{
    const struct explain *explain = writer->explain;
    struct text *text = writer->text;
    char size[SIZE_TEXT];
    size_t before = text->length;
    if (explain->lost_entries)
        text_printf(text, "  the oldest %" PRIu64 " events were overwritten: what grew before is not seen\n",
                    explain->lost_entries);
    if (explain->unrecorded)
        text_printf(text, "  %" PRIu64 " events came while recording was paused\n", explain->unrecorded);
    if (!explain->has_entries)
        text_add(text, "  recording was off: there is no trace, so no request, no growth and no replay\n");
    else if (explain->memory.before)
        text_printf(text, "  %s in %" PRIu64 " block%s were allocated before the first entry\n",
                    explain_size(writer, explain->memory.before, size), explain->memory.before_blocks,
                    explain_plural(explain->memory.before_blocks));
    if (explain->is_rebuilt)
        text_add(text, "  approximate: block sizes of the past are rounded up from requests, and holes follow from them\n");
    if (explain->is_failure && explain->is_cached && !explain->request.has_pool)
        text_add(text, "  the request's memory pool is not told: it is taken for the default one\n");
    if (explain->settings.judged == EXPLAIN_JUDGED && !explain->settings.exact)
        text_add(text, "  the recording is not reproduced exactly, so predictions are approximate (cudamem replay --verify says "
                       "why)\n");
    if (text->length == before)
        return;
    static const char heading[] = "\nWhat is not known\n";
    size_t tail = text->length - before;
    struct text lines = {0};
    text_append(&lines, text->bytes + before, tail);
    text->length = before;
    text_add(text, heading);
    text_append(text, text_string(&lines), lines.length);
    text->failed |= text_failed(&lines);
    text_free(&lines);
}
