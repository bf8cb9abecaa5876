/* What the files of the naive allocator share.  The numbered rules are those of the allocator's description. */
#ifndef TEST_ALLOC_NAIVE_INTERNAL_H
#define TEST_ALLOC_NAIVE_INTERNAL_H

#include "naive.h"

#include <stddef.h>

enum { MAX_BLOCKS = 8192, MAX_POOLS = 64, MAX_STREAMS = 16, MAX_EVENTS = 4096, MAX_SCOPES = 16 };

struct span { /* what the device gave: a segment, or reserved address space if page is not 0 */
    uint64_t address, size, page;
};

struct pool { /* with the small class at [0] and the large at [1] */
    struct pool_id id;
    int uses;
    bool there, lends, no_split;
    uint64_t searches[2];
};

struct streams {
    int64_t of[MAX_STREAMS];
    int count;
};

struct block {
    uint64_t address, size, requested, context, segment_context, searches_then;
    int64_t stream;
    struct span *span;
    struct pool *pool;
    int large;
    bool allocated, mapped, in_set; /* in_set: free and on offer, or unmapped */
    struct streams uses, capture_uses;
    int events;
};

struct pending {
    int64_t stream;
    uint64_t event;
    struct block *block;
};

struct scope {
    struct pool *pool;
    bool (*filter)(void *self, int64_t stream);
    void *self;
};

struct naive {
    struct allocator_options options;
    struct settings *conf; /* in options */
    struct memory_stats stats;
    uint64_t reserved;
    struct block *blocks[MAX_BLOCKS];
    size_t block_count;
    struct pool pools[MAX_POOLS]; /* the first is the default pool */
    struct pending pending[MAX_EVENTS];
    size_t pending_count;
    struct block *deferred[MAX_BLOCKS];
    size_t deferred_count;
    struct scope scopes[MAX_SCOPES];
    size_t scope_count;
};

struct set {
    struct block **of;
    size_t count;
};

struct request {
    uint64_t requested, size, segment, context;
    int64_t stream;
    struct pool *pool;
    int large;
    bool expandable; /* the setting, at this request */
};

static inline bool naive_is_expandable(const struct block *b)
{
    return b->span->page != 0;
}

static inline bool naive_is_waiting(const struct block *b)
{
    return b->events || b->uses.count;
}

/* naive_blocks.c */
void *naive_must(void *memory);
uint64_t naive_up(uint64_t n, uint64_t unit);
uint64_t naive_round_size(const struct settings *conf, uint64_t n);
uint64_t naive_segment_size(const struct settings *conf, uint64_t size);
void naive_add(struct memory_stat *stat, int64_t amount);
void naive_count(struct naive *a, enum memory_stat_kind kind, const struct block *b, int64_t amount);
void naive_tell(struct naive *a, enum allocator_action action, uint64_t address, uint64_t size, int64_t stream,
                const struct pool *pool, uint64_t context);
struct block *naive_block_add(struct naive *a, const struct block *like, uint64_t address, uint64_t size);
void naive_block_remove(struct naive *a, struct block *b);
struct block *naive_after(const struct naive *a, const struct block *b);
struct block *naive_before(const struct naive *a, const struct block *b);
bool naive_is_split(const struct naive *a, const struct block *b);
struct block *naive_block_at(const struct naive *a, uint64_t address);
void naive_offer(struct block *b);
uint64_t naive_try_merge(struct naive *a, struct block *to, struct block *from);
struct set naive_set_of(const struct naive *a, const struct pool *pool, int large, bool mapped);
size_t naive_lower_bound(const struct set *set, int64_t stream, uint64_t size);

/* naive_segments.c */
int naive_alloc_block(struct naive *a, const struct request *r, bool retry, struct block **found);
struct pool *naive_next_pool(struct naive *a, const struct pool *last);
void naive_release_cached(struct naive *a, struct pool *only, uint64_t context);
void naive_collect(struct naive *a, uint64_t context);
bool naive_release_available(struct naive *a, const struct request *r);

/* naive.c */
void naive_synchronize(struct naive *a, const struct pool *only, uint64_t context);

#endif
