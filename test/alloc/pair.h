/*
 * The allocator and the naive one side by side: a step is done on both, each on a device of its own, and everything
 * that can be seen of them is compared.  Uses src/alloc, naive.h, fake_device.h.
 */
#ifndef TEST_ALLOC_PAIR_H
#define TEST_ALLOC_PAIR_H

#include "fake_device.h"
#include "naive.h"

enum step_kind {
    STEP_MALLOC,        /* size, stream, context */
    STEP_FREE,          /* address, context */
    STEP_RECORD_STREAM, /* address, stream */
    STEP_COMPLETE,      /* address, context */
    STEP_EMPTY_CACHE,   /* context */
    STEP_PROGRESS,      /* stream, size: events */
    STEP_REFUSE_GET,    /* size: the n-th call, status */
    STEP_REFUSE_MAP,    /* the same */
    STEP_LIMIT,         /* size */
    STEP_SETTINGS,      /* settings, text for the message */
    STEP_POOL_CREATE,   /* pool, pool_options */
    STEP_POOL_RETAIN,   /* pool */
    STEP_POOL_RELEASE,  /* pool */
    STEP_POOL_FLUSH,    /* pool, context */
    STEP_SCOPE_BEGIN,   /* pool, only_stream */
    STEP_SCOPE_END,     /* pool */
    STEP_FIND,          /* address */
    STEP_KINDS
};

struct step {
    enum step_kind kind;
    uint64_t size, address, context;
    int64_t stream;
    int status;
    struct pool_id pool;
    struct pool_options pool_options;
    const int64_t *only_stream; /* lives as long as the scope; NULL: every stream */
    struct settings settings;
    char text[200];
};

enum { PAIR_EVENTS = 4096, PAIR_ITEMS = 8192 };

struct view_item { /* a segment, or a block of the last one */
    bool is_segment;
    struct allocator_segment segment;
    struct allocator_block block;
};

struct side { /* what one of the two shows */
    struct fake_device device;
    struct allocator_event events[PAIR_EVENTS]; /* of the last step */
    size_t event_count;
    struct view_item items[PAIR_ITEMS];
    size_t item_count;
    int status;
    uint64_t address;
    struct allocator_block found;
};

struct pair {
    struct side sides[2]; /* the real one, the naive one */
    struct allocator *real;
    struct naive *naive;
    char difference[1000]; /* of the step that failed */
};

struct pair *pair_new(uint64_t capacity, bool events, const struct settings *settings, uint64_t limit);
void pair_free(struct pair *pair);

/* One step; false: the two differ or the real one is not right in itself, and difference says how. */
bool pair_step(struct pair *pair, const struct step *step);

/* The step in words. */
void step_print(const struct step *step, char *text, size_t size);

#endif
