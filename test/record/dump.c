/*
 * dump FILE [faults]: a snapshot in one line a fact, for the tests to compare.  Uses format and snapshot.
 *
 *   process PROGRAM pid=P rank=R status=S incomplete=0|1 arguments=A|B|C
 *   device D total=T peak=P current=C entries=N lost=L ooms=O allocated=PEAK,CURRENT max=M
 *   entry ACTION SIZE device=D stream=S kind=K call=C flags=F address=A stack=inner;...;outer
 *   live SIZE device=D kind=K stack=...
 *   block SIZE at=OFFSET state=S requested=?|known before=0|1 stack=...
 *   annotation START|END|MARK NAME thread=own|all entry=N    (N: how many entries came before it)
 *   faults allocs=N segments=N overlaps=N outside=N inexact=N     (with "faults": of the states at all moments)
 */
#include "format/format.h"
#include "snapshot/snapshot.h"
#include "snapshot/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_stack(const struct snapshot *snapshot, uint32_t context)
{
    if (context == CONTEXT_NONE) {
        puts(" stack=none");
        return;
    }
    printf(" stack=");
    uint32_t node = snapshot_context_stack(snapshot, context);
    for (bool first = true; node != STACK_EMPTY; node = snapshot->stacks[node].parent, first = false)
        printf("%s%s", first ? "" : ";",
               snapshot_object_text(snapshot, snapshot->frames[snapshot->stacks[node].frame].name, NULL));
    putchar('\n');
}

static void print_entry(const struct snapshot *snapshot, size_t i)
{
    struct entry entry = snapshot_entry(snapshot, i);
    printf("entry %s %" PRIu64 " device=%u stream=", action_name(entry.action), entry.size, entry.device);
    if (entry.flags & ENTRY_STREAM_UNKNOWN)
        printf("?");
    else
        printf("%" PRId64, entry.stream);
    printf(" kind=%s call=%s flags=%u address=%" PRIu64, memory_kind_name((enum memory_kind)entry.kind),
           snapshot_content_text(snapshot, snapshot->calls[entry.call], NULL), entry.flags, entry.address);
    print_stack(snapshot, entry.context);
}

static void print_device(const struct snapshot *snapshot, const struct device *device)
{
    const struct memory_stat *reserved = &device->stats.kinds[MEMORY_STAT_RESERVED_BYTES][MEMORY_POOL_ALL];
    uint64_t entries = 0;
    for (size_t i = 0; i < snapshot->entries.count; i++)
        entries += snapshot->entries.device[i] == device->ordinal;
    printf("device %u total=%" PRIu64 " peak=%" PRId64 " current=%" PRId64 " entries=%" PRIu64 " lost=%" PRIu64
           " ooms=%" PRId64 " allocated=%" PRId64 ",%" PRId64 " max=%" PRIu64 " name=%s\n",
           device->ordinal, device->total, reserved->peak, reserved->current, entries, device->lost_entries,
           device->stats.num_ooms, device->stats.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].peak,
           device->stats.kinds[MEMORY_STAT_ALLOCATED_BYTES][MEMORY_POOL_ALL].current, device->max_entries,
           snapshot_content_text(snapshot, device->name, NULL));
}

static void print_blocks(const struct snapshot *snapshot, const struct segment *segment)
{
    for (uint32_t b = 0; b < segment->block_count; b++) {
        const struct block *block = &snapshot->end.blocks[segment->first_block + b];
        printf("block %" PRIu64 " at=%" PRIu64 " state=%s requested=%s before=%d", block->size,
               block->address - segment->address, block_state_name((enum block_state)block->state),
               block->flags & BLOCK_REQUESTED_UNKNOWN ? "?" : "known", (block->flags & BLOCK_BEFORE_RECORDING) != 0);
        print_stack(snapshot, block->context);
    }
}

static void print_annotation(const struct snapshot *snapshot, const struct annotation *annotation)
{
    static const char *const stages[] = {"START", "END", "MARK", "OTHER"};
    const struct entries *entries = &snapshot->entries;
    size_t before = 0;
    while (before < entries->count && entries->time[before] < annotation->time)
        before++;
    printf("annotation %s %s thread=%s entry=%zu\n", stages[annotation->stage],
           snapshot_object_text(snapshot, annotation->name, NULL), annotation->thread ? "own" : "all",
           before + annotation->later);
}

/* Every moment's state, made from the end and the entries: how often those disagree. */
static int print_faults(const struct snapshot *snapshot)
{
    struct state_faults sum = {0};
    uint64_t inexact = 0;
    for (uint64_t moment = 0; moment <= snapshot->entries.count; moment++) {
        struct state state;
        struct state_faults faults;
        struct error err = {0};
        if (state_at_counting(snapshot, moment, &state, &faults, &err)) {
            fprintf(stderr, "dump: %s\n", err.message);
            return EXIT_FAILURE;
        }
        sum.unknown_allocs += faults.unknown_allocs;
        sum.unknown_segments += faults.unknown_segments;
        sum.overlaps += faults.overlaps;
        sum.outside += faults.outside;
        inexact += !state.exact;
        state_free(&state);
    }
    printf("faults allocs=%" PRIu64 " segments=%" PRIu64 " overlaps=%" PRIu64 " outside=%" PRIu64 " inexact=%" PRIu64
           "\n",
           sum.unknown_allocs, sum.unknown_segments, sum.overlaps, sum.outside, inexact);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct snapshot *snapshot;
    struct error err = {0};
    if (argc < 2 || argc > 3 || format_read(argv[1], NULL, &snapshot, &err)) {
        fprintf(stderr, "dump: %s\n", argc == 2 || argc == 3 ? err.message : "usage: dump FILE [faults]");
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct process *process = &snapshot->processes[i];
        size_t length = 0;
        const char *arguments = snapshot_content_text(snapshot, process->arguments, &length);
        printf("process %s pid=%" PRId64 " rank=%" PRId64 " status=%d incomplete=%d arguments=",
               snapshot_content_text(snapshot, process->program, NULL), process->pid, process->rank,
               (int)process->exit_status, process->incomplete);
        for (size_t k = 0; k < length; k++)
            putchar(arguments[k] ? arguments[k] : '|');
        putchar('\n');
    }
    for (size_t i = 0; i < snapshot->device_count; i++)
        print_device(snapshot, &snapshot->devices[i]);
    for (size_t i = 0; i < snapshot->entries.count; i++)
        print_entry(snapshot, i);
    for (size_t i = 0; i < snapshot->end.segment_count; i++) {
        const struct segment *segment = &snapshot->end.segments[i];
        printf("live %" PRIu64 " device=%u kind=%s", segment->total_size, segment->device,
               memory_kind_name((enum memory_kind)segment->kind));
        print_stack(snapshot, segment->context);
        print_blocks(snapshot, segment);
    }
    for (size_t i = 0; i < snapshot->annotation_count; i++)
        print_annotation(snapshot, &snapshot->annotations[i]);
    int status = argc == 3 ? print_faults(snapshot) : EXIT_SUCCESS;
    snapshot_free(snapshot);
    return status;
}
