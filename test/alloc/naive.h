/*
 * The caching allocator once more, written from its description as plainly as can be: one array of blocks, neighbours
 * found by looking through it, sets made by sorting.  test_property.c compares src/alloc with it after every step.
 * Shares the types of alloc/allocator.h, and no code.  Host memory that runs out ends the program.
 */
#ifndef TEST_ALLOC_NAIVE_H
#define TEST_ALLOC_NAIVE_H

#include "alloc/allocator.h"

struct naive;

/* Each does what the function of alloc/allocator.h with the same name does. */
struct naive *naive_new(const struct allocator_options *options);
void naive_free(struct naive *naive);
int naive_malloc(struct naive *naive, uint64_t requested, int64_t stream, uint64_t context, uint64_t *address);
int naive_release(struct naive *naive, uint64_t address, uint64_t context);
int naive_record_stream(struct naive *naive, uint64_t address, int64_t stream);
int naive_empty_cache(struct naive *naive, uint64_t context);
int naive_complete_free(struct naive *naive, uint64_t address, uint64_t context);
void naive_set_settings(struct naive *naive, const struct settings *settings);
void naive_set_limit(struct naive *naive, uint64_t limit);

int naive_pool_create(struct naive *naive, struct pool_id id, const struct pool_options *options);
int naive_pool_retain(struct naive *naive, struct pool_id id);
int naive_pool_release(struct naive *naive, struct pool_id id);
int naive_pool_flush(struct naive *naive, struct pool_id id, uint64_t context);
int naive_pool_uses(const struct naive *naive, struct pool_id id);
int naive_scope_begin(struct naive *naive, struct pool_id id, bool (*filter)(void *self, int64_t stream), void *self);
int naive_scope_end(struct naive *naive, struct pool_id id);

const struct memory_stats *naive_stats(const struct naive *naive);
uint64_t naive_reserved(const struct naive *naive);
void naive_visit(const struct naive *naive, const struct allocator_visitor *visitor);
bool naive_find(const struct naive *naive, uint64_t address, struct allocator_block *block);

#endif
