/* Reasons for missing stacks.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/no_stack.h"

#include "analyze/frame_text.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key, *text;
} reasons_told[NO_STACK_COUNT] = {
    [NO_STACK_RECORDING_OFF] = {"recording_off", "(no stack: recording was off)"},
    [NO_STACK_BEFORE] = {"before_recording", "(allocated before recording)"},
    [NO_STACK_OVERWRITTEN] = {"overwritten", "(allocated before recording, or its entry was overwritten)"},
    [NO_STACK_TABLE_FULL] = {"table_full", "(no stack: the recorder's table of stacks was full)"},
    [NO_STACK_NOT_TAKEN] = {"not_taken", "(no stack was taken)"},
    [NO_STACK_NO_PYTHON] = {"no_python", "(a thread without Python frames, such as autograd's; native ones were not recorded)"},
    [NO_STACK_NO_FRAMES] = {"no_frames", "(a stack without frames)"},
    [NO_STACK_NOT_USERS] = {"not_users", "(no frame of the program's own)"},
};

const char *no_stack_text(enum no_stack reason)
{
    return reasons_told[reason < NO_STACK_COUNT ? reason : NO_STACK_NO_FRAMES].text;
}

const char *no_stack_key(enum no_stack reason)
{
    return reasons_told[reason < NO_STACK_COUNT ? reason : NO_STACK_NO_FRAMES].key;
}

static bool is_python_only(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->frame_count; i++)
        if (!frame_is_python(snapshot, &snapshot->frames[i]))
            return false;
    return snapshot->frame_count > 0;
}

int no_stacks_open(const struct snapshot *snapshot, struct no_stacks *reasons, struct error *err)
{
    const struct entries *entries = &snapshot->entries;
    bool has_empty = false;
    *reasons = (struct no_stacks){.snapshot = snapshot};
    for (size_t i = 0; i < snapshot->context_count && !has_empty; i++)
        has_empty = snapshot->contexts[i] == STACK_EMPTY;
    if (!has_empty)
        return STATUS_OK;
    reasons->python_only = is_python_only(snapshot);
    reasons->allocations = calloc(snapshot->context_count + 1, 1);
    if (!reasons->allocations)
        return error_no_memory(err);
    for (size_t i = 0; i < entries->count; i++) {
        uint32_t context = entries->context[i];
        if (entries->action[i] == ACTION_ALLOC && context < snapshot->context_count && reasons->allocations[context] < 2)
            reasons->allocations[context]++;
    }
    return STATUS_OK;
}

void no_stacks_close(struct no_stacks *reasons)
{
    free(reasons->allocations);
    *reasons = (struct no_stacks){0};
}

bool no_stack_is_threads(const struct no_stacks *reasons, uint32_t context)
{
    return reasons->python_only && context < reasons->snapshot->context_count &&
           reasons->snapshot->contexts[context] == STACK_EMPTY && reasons->allocations[context] == 1;
}

static bool has_lost(const struct snapshot *snapshot, uint16_t process, uint16_t device)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].process == process && snapshot->devices[i].ordinal == device)
            return snapshot->devices[i].lost_entries > 0;
    return false;
}

enum no_stack no_stack_of(const struct no_stacks *reasons, uint16_t process, uint16_t device, uint32_t context, bool is_before)
{
    const struct snapshot *snapshot = reasons->snapshot;
    if (snapshot_context_stack(snapshot, context) != STACK_EMPTY)
        return NO_STACK_NOT_USERS;
    if (!snapshot->entries.count)
        return NO_STACK_RECORDING_OFF;
    if (is_before)
        return has_lost(snapshot, process, device) ? NO_STACK_OVERWRITTEN : NO_STACK_BEFORE;
    if (context == CONTEXT_NONE)
        return process < snapshot->process_count && snapshot->processes[process].lost_stacks ? NO_STACK_TABLE_FULL
                                                                                             : NO_STACK_NOT_TAKEN;
    if (reasons->allocations[context] > 1)
        return NO_STACK_NOT_TAKEN;
    return no_stack_is_threads(reasons, context) ? NO_STACK_NO_PYTHON : NO_STACK_NO_FRAMES;
}
