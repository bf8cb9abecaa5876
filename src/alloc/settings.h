/*
 * The allocator's settings: PyTorch's PYTORCH_CUDA_ALLOC_CONF, same syntax, same meaning, same refusals.
 *
 *     key:value,key:value,key:[a:b,c:d]
 *
 * settings_parse() follows AcceleratorAllocatorConfig: each parse first resets max_split_size, the roundup divisions and
 * the collection threshold; every other option keeps the value it had.  Plain data: copy freely.
 */
#ifndef ALLOC_SETTINGS_H
#define ALLOC_SETTINGS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define SETTINGS_UNLIMITED UINT64_MAX
#define SETTINGS_ROUNDUP_ENTRIES 16 /* entry i: requests of [2^(20+i), 2^(21+i)); the first also below, the last above */
#define SETTINGS_MIB (UINT64_C(1) << 20)

struct settings {
    uint64_t max_split_size;          /* bytes, SETTINGS_UNLIMITED */
    uint64_t max_non_split_rounding;  /* bytes */
    uint64_t large_segment_size;      /* bytes */
    double garbage_collection_threshold;
    uint32_t roundup_divisions[SETTINGS_ROUNDUP_ENTRIES];
    bool expandable_segments;
    bool graph_capture_record_stream_reuse;
    bool release_lock_on_device_malloc; /* release_lock_on_cudamalloc */
    double per_process_memory_fraction; /* 1: no limit */
    /* Of the pinned host allocator: accepted and kept. */
    bool pinned_use_background_threads, pinned_use_host_register;
    uint64_t pinned_num_register_threads, pinned_reserve_segment_size;
};

void settings_init(struct settings *settings);

/* Apply text.  On failure err names the key or value and its place in the text, and as in PyTorch what was valid is in
 * force: the options of every accelerator up to the first wrong one of them, then CUDA's own likewise. */
int settings_parse(struct settings *settings, const char *text, struct error *err);

/* A request's size as the allocator rounds it. */
uint64_t settings_round(const struct settings *settings, uint64_t requested);

/* What a request of this rounded size asks the device for. */
uint64_t settings_segment_size(const struct settings *settings, uint64_t rounded);

#endif
