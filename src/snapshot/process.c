/* Settings of one process out of several.  Uses src/base and the snapshot. */
#include "snapshot/snapshot.h"

#include <stdio.h>
#include <string.h>

void snapshot_process_key(size_t process, char key[SNAPSHOT_PROCESS_KEY])
{
    snprintf(key, SNAPSHOT_PROCESS_KEY, "process %zu", process);
}

size_t snapshot_setting_process(const struct snapshot *snapshot, const char *key)
{
    size_t process;
    char own[SNAPSHOT_PROCESS_KEY];
    if (sscanf(key, "process %zu", &process) != 1 || process >= snapshot->process_count)
        return SIZE_MAX;
    snapshot_process_key(process, own);
    return strcmp(own, key) == 0 ? process : SIZE_MAX;
}

bool snapshot_process_setting(const struct snapshot *snapshot, size_t process, const char *key, value *content)
{
    char own[SNAPSHOT_PROCESS_KEY];
    value dict;
    snapshot_process_key(process, own);
    if (snapshot_get_setting(snapshot, own, &dict) && snapshot_dict_get(snapshot, dict, key, content))
        return true;
    return snapshot_get_setting(snapshot, key, content);
}

static bool is_set_to(const struct snapshot *snapshot, size_t process, const char *key, const char *word)
{
    value content;
    return snapshot_process_setting(snapshot, process, key, &content) && value_kind(content) == VALUE_STRING &&
           strcmp(snapshot_object_text(snapshot, (uint32_t)value_payload(content), NULL), word) == 0;
}

bool snapshot_is_cached(const struct snapshot *snapshot, size_t process)
{
    return snapshot->source == SOURCE_RECORDED && is_set_to(snapshot, process, "CUDAMEM_ALLOCATOR", "caching");
}

bool snapshot_tells_requests(const struct snapshot *snapshot, size_t process)
{
    return snapshot->source == SOURCE_TORCH || snapshot_is_cached(snapshot, process) ||
           (snapshot->source == SOURCE_RECORDED && is_set_to(snapshot, process, "framework_blocks", "history"));
}
