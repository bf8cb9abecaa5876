/* The words of PyTorch's snapshots and their numbers here.  Uses src/base. */
#include "snapshot/snapshot.h"

#include <string.h>

static const char *const action_names[ACTION_COUNT] = {
    [ACTION_ALLOC] = "alloc",
    [ACTION_FREE_REQUESTED] = "free_requested",
    [ACTION_FREE_COMPLETED] = "free_completed",
    [ACTION_SEGMENT_ALLOC] = "segment_alloc",
    [ACTION_SEGMENT_FREE] = "segment_free",
    [ACTION_SEGMENT_MAP] = "segment_map",
    [ACTION_SEGMENT_UNMAP] = "segment_unmap",
    [ACTION_SNAPSHOT] = "snapshot",
    [ACTION_OOM] = "oom",
    [ACTION_OTHER] = "other",
};

static const char *const memory_kind_names[MEMORY_KIND_COUNT] = {
    [MEMORY_PLAIN] = "plain",     [MEMORY_PITCHED] = "pitched", [MEMORY_ARRAY] = "array",
    [MEMORY_MIPMAPPED] = "mipmapped", [MEMORY_MANAGED] = "managed", [MEMORY_HOST] = "host",
    [MEMORY_ASYNC] = "async",     [MEMORY_POOL] = "pool",       [MEMORY_VIRTUAL] = "virtual",
    [MEMORY_IMPORTED] = "imported", [MEMORY_GRAPH] = "graph",   [MEMORY_CONTEXT] = "context",
    [MEMORY_MODULE] = "module",
};

static const char *const field_names[FIELD_COUNT] = {
    [FIELD_ACTION] = "action",
    [FIELD_ADDR] = "addr",
    [FIELD_DEVICE_FREE] = "device_free",
    [FIELD_SIZE] = "size",
    [FIELD_STREAM] = "stream",
    [FIELD_TIME_US] = "time_us",
    [FIELD_COMPILE_CONTEXT] = "compile_context",
    [FIELD_USER_METADATA] = "user_metadata",
    [FIELD_FRAMES] = "frames",
    [FIELD_POOL_ID] = "pool_id",
    [FIELD_DEVICE] = "device",
    [FIELD_ADDRESS] = "address",
    [FIELD_TOTAL_SIZE] = "total_size",
    [FIELD_ALLOCATED_SIZE] = "allocated_size",
    [FIELD_ACTIVE_SIZE] = "active_size",
    [FIELD_REQUESTED_SIZE] = "requested_size",
    [FIELD_SEGMENT_TYPE] = "segment_type",
    [FIELD_SEGMENT_POOL_ID] = "segment_pool_id",
    [FIELD_IS_EXPANDABLE] = "is_expandable",
    [FIELD_BLOCKS] = "blocks",
    [FIELD_STATE] = "state",
    [FIELD_HISTORY] = "history",
    [FIELD_NAME] = "name",
    [FIELD_FILENAME] = "filename",
    [FIELD_LINE] = "line",
    [FIELD_STAGE] = "stage",
    [FIELD_SEGMENTS] = "segments",
    [FIELD_DEVICE_TRACES] = "device_traces",
    [FIELD_ALLOCATOR_SETTINGS] = "allocator_settings",
    [FIELD_EXTERNAL_ANNOTATIONS] = "external_annotations",
};

static int name_find(const char *const *names, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return i;
    return -1;
}

const char *action_name(enum action action)
{
    return (unsigned)action < ACTION_COUNT ? action_names[action] : "other";
}

enum action action_from_name(const char *name, size_t length)
{
    int found = name_find(action_names, ACTION_OTHER, name, length);
    return found < 0 ? ACTION_OTHER : (enum action)found;
}

const char *memory_kind_name(enum memory_kind kind)
{
    return (unsigned)kind < MEMORY_KIND_COUNT ? memory_kind_names[kind] : "unknown";
}

const char *block_state_name(enum block_state state)
{
    switch (state) {
    case BLOCK_INACTIVE:
        return "inactive";
    case BLOCK_ACTIVE_ALLOCATED:
        return "active_allocated";
    case BLOCK_ACTIVE_PENDING_FREE:
        return "active_pending_free";
    default:
        return "other";
    }
}

const char *field_name(enum field field)
{
    return (unsigned)field < FIELD_COUNT ? field_names[field] : "";
}

int field_from_name(const char *name, size_t length)
{
    return name_find(field_names, FIELD_COUNT, name, length);
}
