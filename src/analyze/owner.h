/*
 * Who asked for memory: of a stack, the first library outside CUDA's own, by the name that people know it by; with
 * frames of Python alone, the top package.  And frameworks that pool for themselves, with what switches that off.
 *
 * Holds a pointer to the snapshot, which must outlive it.  Cost: one look at each frame and stack node.
 */
#ifndef ANALYZE_OWNER_H
#define ANALYZE_OWNER_H

#include "base/error.h"
#include "base/strings.h"
#include "snapshot/snapshot.h"

#define OWNER_UNKNOWN 0u /* no stack, or nothing in it but CUDA's own */

struct owners {
    const struct snapshot *snapshot;
    struct strings *names; /* number -> name; 0 is "unknown" */
    uint32_t *of_stack;    /* stack node -> owner */
    uint32_t *frame_of;    /* stack node -> the frame that says so, NONE32 */
    uint32_t count;
};

int owners_open(const struct snapshot *snapshot, struct owners *owners, struct error *err);
void owners_close(struct owners *owners);

uint32_t owner_of_context(const struct owners *owners, uint32_t context);
uint32_t owner_frame(const struct owners *owners, uint32_t context); /* NONE32: none */
const char *owner_name(const struct owners *owners, uint32_t owner);

/* Memory of this owner is a pool of a framework's own: how to have each allocation by itself, NULL if it is none. */
const char *owner_pool_advice(const char *name);

#endif
