/*
 * Conditions that a recording must meet, each with a verdict: it holds, it is broken, or the file cannot tell.
 *
 * Numbers are those of statistics (their bounds decide: "at least 3" breaks "at most 2" and cannot tell about "at most
 * 4") and of reports of what lives.  What is broken names who holds most of it.  Statistics' conditions are met by each
 * device, those about leaks and growth by all selected ones together.
 */
#ifndef ANALYZE_CHECK_H
#define ANALYZE_CHECK_H

#include "analyze/selection.h"
#include "analyze/statistics.h"
#include "base/error.h"
#include "snapshot/snapshot.h"

enum check_condition {
    CHECK_MAX_PEAK,          /* allocated bytes at most */
    CHECK_MAX_PEAK_RESERVED,
    CHECK_MAX_RETRIES,       /* of the allocator, after it gave its cache back */
    CHECK_NO_OOM,
    CHECK_COMPLETE,          /* the trace has every entry */
    CHECK_MAX_GROWTH,        /* bytes that live at the moment, less those that did at `since` */
    CHECK_NO_LEAKS,          /* nothing lives that was allocated after `since` */
    CHECK_CONDITIONS,
};

enum check_verdict { CHECK_HOLDS, CHECK_BROKEN, CHECK_CANNOT_TELL };

struct check_subject {
    const struct snapshot *snapshot;
    const struct state *state;         /* at the moment */
    const struct selection *selection; /* bound; a device is all that it may select */
    uint64_t since, moment;            /* entries before them */
    bool from_start;                   /* since is the start: what was lost before it counts */
};

struct check_finding {
    enum check_condition condition;
    enum check_verdict verdict;
    bool of_device;            /* else of all selected ones together */
    uint16_t process, device;
    uint64_t value, limit;     /* bytes, or a count: check_is_bytes() */
    enum statistics_bound bound; /* of value; STATISTICS_UNKNOWN: there is none */
    const char *reason;        /* why it cannot tell; static; or NULL */
    char who[256];             /* who has most of it, and how much; "" where nobody is to be named */
};

bool check_is_bytes(enum check_condition condition);
bool check_is_of_device(enum check_condition condition);
const char *check_name(enum check_condition condition); /* as the option is called */

/* Of one device's statistics at the moment. */
int check_device(const struct check_subject *subject, enum check_condition condition, uint64_t limit,
                 const struct statistics *statistics, struct check_finding *finding, struct error *err);

/* Of all. */
int check_all(const struct check_subject *subject, enum check_condition condition, uint64_t limit,
              struct check_finding *finding, struct error *err);

#endif
