/* Conditions and their verdicts.  May use src/analyze, src/snapshot and src/base. */
#include "analyze/check.h"

#include "analyze/moment.h"
#include "analyze/report.h"
#include "base/size.h"
#include "snapshot/state.h"

#include <stdio.h>
#include <string.h>

static const char *const names[CHECK_CONDITIONS] = {"max-peak", "max-peak-reserved", "max-retries", "no-oom", "complete",
                                                    "max-growth", "no-leaks"};

bool check_is_bytes(enum check_condition condition)
{
    return condition != CHECK_MAX_RETRIES && condition != CHECK_NO_OOM && condition != CHECK_COMPLETE;
}

bool check_is_of_device(enum check_condition condition)
{
    return condition != CHECK_MAX_GROWTH && condition != CHECK_NO_LEAKS;
}

const char *check_name(enum check_condition condition)
{
    return names[condition];
}

/* --- verdicts --------------------------------------------------------------------------------------------------------- */

static bool has_entries(const struct snapshot *snapshot, uint16_t device)
{
    for (size_t i = 0; i < snapshot->entries.count; i++)
        if (snapshot->entries.device[i] == device)
            return true;
    return false;
}

/* Recording was off: for all, or for a device that holds something nevertheless.  What we recorded ourselves has a trace,
 * and be it one in which nothing happened. */
static bool has_no_trace(const struct snapshot *snapshot, int device)
{
    if (snapshot->source == SOURCE_RECORDED)
        return false;
    if (!snapshot->entries.count)
        return true;
    uint32_t looked = UINT32_MAX; /* segments of a device mostly stand together */
    for (size_t i = 0; i < snapshot->end.segment_count; i++) {
        uint16_t one = snapshot->end.segments[i].device;
        if ((device >= 0 && one != device) || one == looked)
            continue;
        looked = one;
        if (!has_entries(snapshot, one))
            return true;
    }
    return false;
}

/* A value and what is known of it against the most that it may be. */
static void judge(struct check_finding *finding)
{
    bool is_above = finding->value > finding->limit;
    bool is_sure = finding->bound == STATISTICS_EXACT || (finding->bound == STATISTICS_AT_LEAST && is_above) ||
                   (finding->bound == STATISTICS_AT_MOST && !is_above);
    finding->verdict = !is_sure ? CHECK_CANNOT_TELL : is_above ? CHECK_BROKEN : CHECK_HOLDS;
    if (!is_sure)
        finding->reason = finding->bound == STATISTICS_AT_LEAST  ? "the value is the least that it can be"
                          : finding->bound == STATISTICS_AT_MOST ? "the value is the most that it can be"
                                                                 : "the file does not have it";
}

static int64_t number_of(const struct statistics *statistics, const char *name, struct check_finding *finding)
{
    const struct memory_stats_key *keys = memory_stats_keys();
    for (int i = 0; i < MEMORY_STATS_KEYS; i++) {
        if (strcmp(keys[i].name, name))
            continue;
        finding->bound = statistics_bound(statistics, &keys[i]);
        return memory_stats_value(&statistics->values, &keys[i]);
    }
    finding->bound = STATISTICS_UNKNOWN;
    return 0;
}

/* --- who -------------------------------------------------------------------------------------------------------------- */

/* The first frame of a report's first row, and what it has. */
static void name_first(const struct report *report, struct check_finding *finding)
{
    char size[SIZE_TEXT];
    size_t length = 0;
    uint32_t node = report->count ? report->rows[0].stack : 0;
    const char *frame = report->count ? report_frame(report, &node, &length) : NULL;
    if (frame)
        snprintf(finding->who, sizeof(finding->who), "%s by %.*s", size_format(report->rows[0].amount.bytes, size),
                 (int)(length < 200 ? length : 200), frame);
}

static int make_report(const struct check_subject *subject, const struct selection *selection, const struct state *state,
                       enum report_by by, struct report *report, struct error *err)
{
    const struct report_options options = {.by = by, .group = REPORT_STACK, .user_frames = true, .since = subject->since};
    return report_make(subject->snapshot, state, selection, &options, report, err);
}

/* Who had most of a device's memory when it had most. */
static int name_peak(const struct check_subject *subject, struct check_finding *finding, struct error *err)
{
    struct moment_peak allocated, reserved;
    struct state state;
    struct report report;
    struct selection selection = *subject->selection; /* what it points at stays the subject's */
    selection.device = finding->device;
    if (!subject->snapshot->entries.count || subject->snapshot->process_count > 1)
        return STATUS_OK;
    int status = moment_peaks(subject->snapshot, finding->device, &allocated, &reserved, err);
    uint64_t moment = finding->condition == CHECK_MAX_PEAK ? allocated.moment : reserved.moment;
    if (status || moment > subject->moment)
        return status;
    status = state_at(subject->snapshot, moment, &state, err);
    if (status)
        return status;
    status = make_report(subject, &selection, &state, REPORT_LIVE, &report, err);
    if (!status) {
        name_first(&report, finding);
        report_free(&report);
    }
    state_free(&state);
    return status;
}

/* --- conditions --------------------------------------------------------------------------------------------------------- */

static const char *const statistic_of[] = {
    [CHECK_MAX_PEAK] = "allocated_bytes.all.peak",
    [CHECK_MAX_PEAK_RESERVED] = "reserved_bytes.all.peak",
    [CHECK_MAX_RETRIES] = "num_alloc_retries",
    [CHECK_NO_OOM] = "num_ooms",
};

int check_device(const struct check_subject *subject, enum check_condition condition, uint64_t limit,
                 const struct statistics *statistics, struct check_finding *finding, struct error *err)
{
    *finding = (struct check_finding){.condition = condition, .of_device = true, .process = statistics->process,
                                      .device = statistics->device, .limit = limit};
    if (condition == CHECK_COMPLETE) {
        finding->bound = has_no_trace(subject->snapshot, finding->device) ? STATISTICS_UNKNOWN : STATISTICS_EXACT;
        finding->value = statistics->lost_entries;
    } else {
        int64_t number = number_of(statistics, statistic_of[condition], finding);
        finding->value = number < 0 ? 0 : (uint64_t)number;
    }
    judge(finding);
    if (finding->verdict == CHECK_BROKEN && condition <= CHECK_MAX_PEAK_RESERVED)
        return name_peak(subject, finding, err);
    return STATUS_OK;
}

static bool has_lost_entries(const struct check_subject *subject)
{
    for (size_t i = 0; i < subject->snapshot->device_count; i++) {
        const struct device *device = &subject->snapshot->devices[i];
        int selected = subject->selection->device;
        if ((selected < 0 || device->ordinal == selected) && device->lost_entries)
            return true;
    }
    return false;
}

/* What lived at `since`. */
static int live_before(const struct check_subject *subject, uint64_t *bytes, struct error *err)
{
    struct state state;
    struct report report;
    int status = state_at(subject->snapshot, subject->since, &state, err);
    if (status)
        return status;
    status = make_report(subject, subject->selection, &state, REPORT_LIVE, &report, err);
    if (!status) {
        *bytes = report.total.bytes;
        report_free(&report);
    }
    state_free(&state);
    return status;
}

static int live_now(const struct check_subject *subject, uint64_t *bytes, struct error *err)
{
    struct report report;
    int status = make_report(subject, subject->selection, subject->state, REPORT_LIVE, &report, err);
    if (!status) {
        *bytes = report.total.bytes;
        report_free(&report);
    }
    return status;
}

int check_all(const struct check_subject *subject, enum check_condition condition, uint64_t limit,
              struct check_finding *finding, struct error *err)
{
    struct report leak;
    uint64_t before = 0, now = 0;
    *finding = (struct check_finding){.condition = condition, .limit = limit, .bound = STATISTICS_UNKNOWN};
    if (has_no_trace(subject->snapshot, subject->selection->device)) {
        finding->verdict = CHECK_CANNOT_TELL;
        finding->reason = "there is no trace: recording was off";
        return STATUS_OK;
    }
    int status = make_report(subject, subject->selection, subject->state, REPORT_LEAK, &leak, err);
    if (!status && condition == CHECK_MAX_GROWTH) {
        status = live_before(subject, &before, err);
        if (!status)
            status = live_now(subject, &now, err);
    }
    if (status == STATUS_OK) {
        finding->value = condition == CHECK_NO_LEAKS ? leak.total.bytes : now > before ? now - before : 0;
        if (!subject->from_start || !has_lost_entries(subject))
            finding->bound = STATISTICS_EXACT;
        else if (condition == CHECK_NO_LEAKS)
            finding->bound = STATISTICS_AT_LEAST; /* what lived at the true start is not known, nor then the growth */
        judge(finding);
        if (finding->verdict == CHECK_CANNOT_TELL)
            finding->reason = "older entries were lost; --since names a moment that is there";
        if (finding->verdict == CHECK_BROKEN)
            name_first(&leak, finding);
        report_free(&leak);
    }
    return status;
}
