/*
 * Rules that put memory into categories (parameter, gradient, activation, ...) by the stack that allocated it: plain
 * data, made by format/categories_read.h, applied by analyze/category.h.
 *
 * The first rule of which every condition holds decides.  Expressions are extended regular expressions over frames as
 * `FILE:LINE:FUNCTION`, as --stack has them; NULL: no condition.  Ownership: the list owns its texts.
 */
#ifndef SNAPSHOT_CATEGORY_RULES_H
#define SNAPSHOT_CATEGORY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum category_frames {
    CATEGORY_FRAMES_ANY,   /* no condition */
    CATEGORY_FRAMES_NONE,  /* a stack was taken and has no frame: code without Python, recorded without native frames */
};

struct category_rule {
    char *category;        /* never empty */
    char *frame;           /* some frame of the stack matches */
    char *not_frame;       /* none does */
    char *innermost;       /* the innermost frame that is shown does */
    uint64_t *requested;   /* the request is one of these sizes */
    size_t requested_count;
    uint8_t frames;        /* enum category_frames */
    bool kept;             /* it is never freed, as far as the trace goes */
    bool once;             /* nothing else that is kept has its stack and its size */
};

struct category_rules {
    struct category_rule *rules;
    size_t count, capacity;
    bool replaces;         /* the shipped rules do not follow these */
};

void category_rules_free(struct category_rules *rules); /* and zeroed */

#endif
