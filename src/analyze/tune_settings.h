/*
 * The settings that tune.c tries, as data: how they are written, where the search begins, what lies around one.
 */
#ifndef ANALYZE_TUNE_SETTINGS_H
#define ANALYZE_TUNE_SETTINGS_H

#include "alloc/settings.h"
#include "analyze/replay.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUNE_SPLITS 16
#define TUNE_LAST_ENTRY (SETTINGS_ROUNDUP_ENTRIES - 1)

struct tune_setting {
    uint32_t max_split_mib;  /* 0: every block may be split */
    uint32_t non_split_mib;  /* max_non_split_rounding; 0: as by default */
    uint16_t divisions;      /* roundup_power2_divisions; 0: none */
    uint8_t first, last;     /* the entries (alloc/settings.h) in which the divisions hold: by default all */
    uint8_t collect_percent; /* garbage_collection_threshold; 0: none */
    bool expandable;
};

/* Of recorded settings: the options that the search leaves alone, without blanks.  A threshold for collections is one
 * of them unless the search `collects`.  The text is to be a fresh one. */
void tune_kept(const char *recorded, bool collects, struct text *kept);

/* What recorded settings say of those that the search turns; what cannot be said here is left out. */
void tune_setting_read(const char *recorded, bool collects, struct tune_setting *setting);

/* A setting as PYTORCH_CUDA_ALLOC_CONF has it, behind the kept options. */
void tune_setting_write(const struct tune_setting *setting, const char *kept, struct text *text);

/* How many options it takes; a list counts twice. */
unsigned tune_setting_options(const struct tune_setting *setting);

/* What the search is about: the recording's sizes and the user's limit. */
struct tune_space {
    uint32_t splits[TUNE_SPLITS]; /* max_split_size_mb, ascending */
    size_t split_count;
    uint32_t least_split, most_split; /* MiB: what the allocator takes, and beyond which nothing changes; 0: no use */
    uint8_t first, last;          /* rounding entries in which requests fall */
    bool collects;                /* there is a limit, so collections matter */
};

/* 0 or no memory.  recorded: those settings' own values take part. */
int tune_space_find(const struct snapshot *snapshot, const struct replay_options *options, const char *recorded,
                    struct tune_space *space);

/* Both hand one setting after the other to add(), until it fails; its status is theirs. */
typedef int (*tune_add)(void *self, const struct tune_setting *setting);
int tune_grid(const struct tune_space *space, tune_add add, void *self);
int tune_neighbours(const struct tune_space *space, const struct tune_setting *setting, tune_add add, void *self);

#endif
