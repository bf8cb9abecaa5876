/* What merge.c and merge_values.c share.  Not for others. */
#ifndef FORMAT_MERGE_INTERNAL_H
#define FORMAT_MERGE_INTERNAL_H

#include "format/merge.h"

/* A setting of one process; settings of a file are those of each of its processes. */
struct merge_setting {
    uint32_t key;   /* string content */
    value content;
    uint16_t process;
    bool is_settled;
    uint32_t next;  /* of the same key, NONE32: the last one */
};

/* A boot of a machine, and what its clocks are of the first process that ran there. */
struct merge_boot {
    uint32_t boot_id;
    int64_t offset; /* real time less monotonic time */
    bool has_clock;
};

struct merge {
    struct snapshot *to; /* NULL before the first one */
    struct merge_facts facts;
    struct merge_setting *settings;
    size_t setting_count, setting_capacity;
    struct table last_settings; /* key -> its last one */
    struct merge_boot *boots;
    size_t boot_count, boot_capacity;
    uint32_t *sources;   /* of each process: which source it came with */
    size_t source_capacity;
    char **names;        /* of the sources */
    size_t name_count, name_capacity;
    struct table places; /* process and ordinal that have a device */
};

/* One source on its way: where its rows begin in the result, and its numbers in ours. */
struct merge_source {
    struct merge *merge;
    const struct snapshot *from;
    uint32_t *strings;     /* content -> ours */
    uint32_t first_object, first_module, first_frame, first_context;
    uint32_t *stacks;
    uint32_t *pools;
    uint32_t *calls;
    uint32_t *shapes;
    int64_t *shifts;       /* of each process: to be added to its times */
    size_t first_process, first_entry, first_segment, first_block, first_annotation;
};

static inline uint32_t merge_string(const struct merge_source *source, uint32_t content)
{
    return content == STRING_NONE ? STRING_NONE : source->strings[content];
}

static inline uint32_t merge_object(const struct merge_source *source, uint32_t object)
{
    return object == STRING_NONE ? STRING_NONE : source->first_object + object;
}

/* Odd values and settings of a source. */
int merge_add_values(struct merge_source *source);

/* The settings collected, into the result. */
int merge_settle_settings(struct merge *merge);

#endif
