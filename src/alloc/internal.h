/*
 * What the files of src/alloc share.  Blocks live in one array and are named by index; 0 is no block.
 */
#ifndef ALLOC_INTERNAL_H
#define ALLOC_INTERNAL_H

#include "alloc/address_map.h"
#include "alloc/allocator.h"
#include "alloc/free_set.h"
#include "base/table.h"

struct block {
    uint64_t address, size, requested;
    uint64_t context, segment_context;
    uint64_t calls_base;  /* the pool's search counter when it was last put into a set */
    uint32_t previous, next;
    uint32_t pool;        /* index into pools: class and owner */
    uint32_t stream;      /* index into streams */
    uint32_t space;       /* expandable segment, NO_SPACE for others */
    uint32_t uses;        /* streams that used it: index into uses, 0 none; also the free list's link */
    uint32_t event_count;
    uint32_t place;       /* free_set_place() where it was last in a set; any value will do */
    bool live;            /* false: this slot of the array is free */
    bool named;           /* by_address has it */
    bool allocated, mapped;
    bool active;          /* handed out, or other streams are not done: it stands in no set and merges with nothing */
    bool deferred;        /* free requested while a scope was open, events not yet put down */
};

#define NO_SPACE UINT32_MAX

/* One class of a pool: small or large. */
struct pool {
    struct free_set *sets;      /* one a stream, by stream index */
    struct free_set *unmapped;  /* the same, keyed by address alone */
    size_t set_capacity;
    uint64_t calls;
    uint32_t owner;             /* index into owners, 0 the default */
    size_t stats_at;            /* where its class's statistics begin, in struct allocator */
    bool is_small, no_split;
};

struct owner { /* a default or private pool: two classes, pools[2 * index] small, [2 * index + 1] large */
    struct pool_id id;
    bool alive, use_on_oom;
    int uses;
    uint64_t reserved; /* bytes of the device; a pool without uses and bytes is forgotten */
    const struct pool_source *source; /* NULL: the device */
    unsigned asking;   /* requests that wait for a segment, maybe without the lock: it is not forgotten meanwhile */
};

struct space { /* an expandable segment */
    uint64_t address, size, page;
    uint32_t stream, pool;
    uint32_t first; /* its first block */
    bool alive;
};

struct stream_use {
    uint32_t stream, next;
    bool in_scope; /* it was recorded while a scope was open */
};

struct pending {
    uint64_t event;
    uint32_t block;
};

struct stream {
    int64_t handle;
    struct pending *queue; /* events put down for frees, oldest first */
    size_t queue_head, queue_count, queue_capacity;
};

struct scope {
    struct pool_id id;
    uint32_t owner;
    bool (*filter)(void *self, int64_t stream);
    void *self;
};

struct allocator {
    struct memory_device device;
    struct settings settings;
    bool collects;         /* settings and limit: searches are counted, for the age of what is free */
    bool rounds_otherwise; /* settings: not simply to the next 512 bytes */
    bool is_unusual;       /* that, or there may be a scope, a pending event or a deferred free: requests look first */
    void (*trace)(void *self, const struct allocator_event *event);
    void *trace_self;
    uint64_t limit, reserved;
    struct memory_stats stats;

    struct block *blocks;
    size_t block_count, block_capacity;
    uint32_t free_blocks; /* list through `uses` */
    struct address_map by_address; /* of blocks that were handed out where they stand now */

    struct pool *pools;
    struct owner *owners;
    uint32_t *owner_order; /* private pools by id */
    size_t owner_order_capacity;
    size_t owner_count, pool_capacity, owner_capacity;
    struct stream *streams;
    uint32_t *stream_order; /* streams by handle as unsigned numbers */
    size_t stream_count, stream_capacity, order_capacity;
    size_t pending_count; /* in all queues */
    struct table stream_index;
    struct stream_use *uses;
    size_t use_count, use_capacity;
    uint32_t free_uses;
    struct space *spaces;
    size_t space_count, space_capacity;
    uint32_t *deferred; /* blocks */
    size_t deferred_count, deferred_capacity;
    struct scope *scopes;
    size_t scope_count, scope_capacity;

    uint32_t recent_stream; /* of the last request, the default one at first */
    int64_t recent_handle;
};

struct request {
    uint64_t requested, size, segment_size, context;
    uint32_t stream, pool;
    bool expandable;
};

static inline bool block_is_split(const struct block *block)
{
    return block->previous || block->next;
}
static inline struct owner *pool_owner(struct allocator *a, uint32_t pool)
{
    return &a->owners[a->pools[pool].owner];
}
/* hot.h has block_new; these are rare parts of what is there, in block.c. */
uint32_t block_slot(struct allocator *a);                      /* one more of the array, 0: no memory */
int block_put_elsewhere(struct allocator *a, uint32_t block);  /* into a set that may have to be made */
void block_join(struct allocator *a, uint32_t block, struct memory_stat *stats); /* a freed block its neighbours */

/* block.c */
uint64_t block_merge(struct allocator *a, uint32_t into, uint32_t from); /* if both are free; the bytes gained */
int block_put(struct allocator *a, uint32_t block); /* into its free set, or the unmapped set; 0 or STATUS_NO_MEMORY */
void block_take(struct allocator *a, uint32_t block);
void block_drop(struct allocator *a, uint32_t block);
int block_uses_add(struct allocator *a, struct block *block, uint32_t stream);
void block_uses_clear(struct allocator *a, struct block *block);
uint32_t stream_find_new(struct allocator *a, int64_t handle);
static inline uint32_t stream_find(struct allocator *a, int64_t handle) /* UINT32_MAX: no memory */
{
    return handle == a->recent_handle ? a->recent_stream : stream_find_new(a, handle);
}
struct free_set *pool_set(struct allocator *a, uint32_t pool, uint32_t stream);
struct free_set *pool_unmapped(struct allocator *a, uint32_t pool, uint32_t stream);
void trace_always(struct allocator *a, enum allocator_action action, uint64_t address, uint64_t size, uint32_t stream,
                  uint32_t pool, uint64_t context);
void trace_free(struct allocator *a, enum allocator_action action, const struct block *block, uint64_t context);
static inline void trace_event(struct allocator *a, enum allocator_action action, uint64_t address, uint64_t size,
                               uint32_t stream, uint32_t pool, uint64_t context)
{
    if (a->trace)
        trace_always(a, action, address, size, stream, pool, context);
}
/* The active block at an address, 0 if there is none. */
static inline uint32_t block_at(const struct allocator *a, uint64_t address)
{
    uint32_t block = address_map_get(&a->by_address, address);
    return block && a->blocks[block].active ? block : 0;
}
static inline int block_name(struct allocator *a, uint32_t block)
{
    if (a->blocks[block].named)
        return 0;
    a->blocks[block].named = true;
    return address_map_set(&a->by_address, a->blocks[block].address, block);
}

/* find.c; find_free is in hot.h */
/* Of equal use: among expandable blocks prefer the one that can grow least; with the setting off skip them. */
struct free_position find_step_over_expandable(const struct allocator *a, bool expandable, const struct free_set *set,
                                               struct free_position at);
int find_segment(struct allocator *a, const struct request *request, bool retry, uint32_t *found);
void segment_return(struct allocator *a, uint32_t pool, uint32_t stream, uint64_t address, uint64_t size);
uint32_t find_on_oom(struct allocator *a, struct request *request); /* found: request is the pool's that lends */

/* frees.c */
int free_block(struct allocator *a, uint32_t block, uint64_t context);
int events_process(struct allocator *a, uint64_t context);
int events_synchronize(struct allocator *a, uint64_t context, uint32_t owner); /* UINT32_MAX: all */

/* release.c */
void release_collect(struct allocator *a, uint64_t context);
bool release_available(struct allocator *a, const struct request *request);
int release_cached(struct allocator *a, uint64_t context, struct pool_id id);

/* expandable.c */
int expandable_allocate(struct allocator *a, const struct request *request, uint32_t *found);
int expandable_unmap(struct allocator *a, uint32_t block, uint64_t context);
void expandable_forget(struct allocator *a, uint32_t pool); /* address space of which nothing is mapped */

#include "alloc/hot.h"

#endif
