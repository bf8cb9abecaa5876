/* An RMM log becomes a snapshot.  Uses src/base, src/snapshot and rmm_row. */
#include "format/rmm_read.h"

#include "base/array.h"
#include "format/rmm_row.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DAY (INT64_C(86400) * 1000000)
#define SET_BACK (INT64_C(65) * 60 * 1000000) /* clocks are set back by an hour; what is further back is the next day */
#define SMALL_REQUEST (UINT64_C(1) << 20)     /* the largest that statistics count as small */
#define HEADER "Thread,Time,Action,Pointer,Size,Stream"
#define NO_DEVICE UINT16_MAX                  /* the file's name has a number that no device has */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct live {
    uint64_t address, size;
    int64_t stream;
};

struct build {
    struct input *input;
    struct snapshot *snapshot;
    struct rmm_header header;
    uint64_t line;          /* the number of the line that is looked at */
    uint16_t device;
    int64_t day, last_time; /* microseconds: the beginning of the day; the latest time so far */
    struct table threads;   /* numbers of more than 32 bits */
    struct live *live;      /* in no order */
    size_t live_count, live_capacity;
    struct table index;     /* address -> live */
    struct memory_stats stats;
    uint64_t weight;        /* all bytes that were allocated */
    bool is_incomplete, is_too_heavy;
    struct error *err;
};

/* --- statistics ------------------------------------------------------------------------------------------------- */

/* An allocation is counted as segment and block alike. */
static void count_memory(struct build *build, uint64_t size, bool grows)
{
    static const enum memory_stat_kind counts[] = {MEMORY_STAT_ALLOCATION, MEMORY_STAT_SEGMENT, MEMORY_STAT_ACTIVE};
    static const enum memory_stat_kind bytes[] = {MEMORY_STAT_ALLOCATED_BYTES, MEMORY_STAT_RESERVED_BYTES,
                                                  MEMORY_STAT_ACTIVE_BYTES, MEMORY_STAT_REQUESTED_BYTES};
    enum memory_pool_class pool = size <= SMALL_REQUEST ? MEMORY_POOL_SMALL : MEMORY_POOL_LARGE;
    if (grows && size > INT64_MAX - build->weight)
        build->is_too_heavy = true;
    if (build->is_too_heavy)
        return;
    if (grows)
        build->weight += size;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        (grows ? memory_stats_increase : memory_stats_decrease)(&build->stats, counts[i], pool, 1);
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
        (grows ? memory_stats_increase : memory_stats_decrease)(&build->stats, bytes[i], pool, (int64_t)size);
}

/* --- what lives ------------------------------------------------------------------------------------------------- */

static struct live *find_live(struct build *build, uint64_t address)
{
    uint32_t i = table_get(&build->index, address, NONE32);
    return i == NONE32 ? NULL : &build->live[i];
}

static int add_live(struct build *build, const struct live *added)
{
    struct live *held = find_live(build, added->address);
    build->stats.num_device_alloc++;
    if (held) { /* its free is missing; the later row is right */
        build->is_incomplete = true;
        count_memory(build, held->size, false);
        count_memory(build, added->size, true);
        *held = *added;
        return STATUS_OK;
    }
    if (build->live_count >= NONE32 - 1 ||
        array_reserve(&build->live, &build->live_capacity, build->live_count + 1, sizeof(*build->live)) ||
        table_set(&build->index, added->address, (uint32_t)build->live_count))
        return error_no_memory(build->err);
    build->live[build->live_count++] = *added;
    count_memory(build, added->size, true);
    return STATUS_OK;
}

/* The size becomes that of the allocation, if there is one. */
static void remove_live(struct build *build, uint64_t address, uint64_t *size)
{
    struct live *held = find_live(build, address);
    build->stats.num_device_free++;
    if (!held) {
        build->is_incomplete = true;
        return;
    }
    *size = held->size;
    count_memory(build, held->size, false);
    table_remove(&build->index, address);
    struct live last = build->live[--build->live_count];
    if (last.address == address)
        return;
    *held = last;
    *table_at(&build->index, last.address, NONE32) = (uint32_t)(held - build->live);
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* The log tells the time of day, so a time long before the last one is the next day's.  A little before are threads
 * that overtook each other, or a clock that was set back. */
static int64_t time_of(struct build *build, const struct rmm_row *row)
{
    int64_t time = row->time;
    if (!row->has_date) {
        time += build->day;
        if (build->day && time - build->last_time > DAY - SET_BACK)
            time -= DAY; /* overtaken at midnight */
        if (build->last_time - time > SET_BACK) {
            build->day += DAY;
            time += DAY;
        }
    }
    if (time > build->last_time)
        build->last_time = time;
    return build->last_time;
}

static int thread_of(struct build *build, uint64_t number, uint32_t *thread)
{
    *thread = (uint32_t)number;
    if (number <= UINT32_MAX)
        return STATUS_OK;
    uint32_t *known = table_at(&build->threads, number, 0);
    if (!known)
        return error_no_memory(build->err);
    if (!*known)
        *known = (uint32_t)build->threads.count;
    *thread = *known;
    return STATUS_OK;
}

/* What a row does, and to which entry it leads. */
static int apply_row(struct build *build, const struct rmm_row *row, struct entry *entry)
{
    struct live live = {row->pointer, row->size, entry->stream};
    switch (row->action) {
    case RMM_ALLOCATE:
        entry->action = ACTION_SEGMENT_ALLOC;
        if (row->pointer && row->size <= UINT64_MAX - row->pointer)
            return add_live(build, &live);
        entry->flags |= ENTRY_BAD;
        return STATUS_OK;
    case RMM_FREE:
        entry->action = ACTION_SEGMENT_FREE;
        remove_live(build, row->pointer, &entry->size);
        if (entry->size > UINT64_MAX - row->pointer)
            entry->flags |= ENTRY_BAD;
        return STATUS_OK;
    case RMM_FAILURE:
        entry->action = ACTION_OOM;
        entry->address = 0; /* what was free is not told */
        build->stats.num_ooms++;
        break;
    }
    return STATUS_OK;
}

static int add_row(struct build *build, const struct rmm_row *row)
{
    struct entry entry;
    bool is_nothing = !row->pointer && (row->action == RMM_FREE || (row->action == RMM_ALLOCATE && !row->size));
    if (is_nothing)
        return STATUS_OK;
    entry_init(&entry);
    entry.device = build->device;
    entry.address = row->pointer;
    entry.size = row->size;
    entry.stream = (int64_t)row->stream;
    if (build->header.places[RMM_TIME] >= 0)
        entry.time = time_of(build, row);
    else
        entry.flags |= ENTRY_NO_TIME;
    if (build->header.places[RMM_STREAM] < 0)
        entry.flags |= ENTRY_STREAM_UNKNOWN;
    int status = thread_of(build, row->thread, &entry.thread);
    if (!status)
        status = apply_row(build, row, &entry);
    if (!status && snapshot_add_entry(build->snapshot, &entry))
        status = error_no_memory(build->err);
    return status;
}

/* --- lines ------------------------------------------------------------------------------------------------------ */

struct line {
    const char *text; /* valid until the input moves */
    size_t length;    /* without its end */
    size_t taken;     /* with it; 0: there is no more line */
    bool is_ended;    /* by a line feed */
};

static int peek_line(struct build *build, struct line *line)
{
    const unsigned char *bytes;
    size_t available;
    int status = input_peek(build->input, RMM_LINE + 1, &bytes, &available, build->err);
    if (status)
        return status;
    const unsigned char *end = memchr(bytes, '\n', available < RMM_LINE + 1 ? available : RMM_LINE + 1);
    line->text = (const char *)bytes;
    line->is_ended = end != NULL;
    line->length = end ? (size_t)(end - bytes) : available;
    line->taken = line->length + line->is_ended;
    if (line->length > RMM_LINE)
        return error_set(build->err, STATUS_INPUT, "line %" PRIu64 ": longer than %d bytes", build->line, RMM_LINE);
    return STATUS_OK;
}

static bool is_blank_line(const struct line *line)
{
    size_t blanks = 0;
    while (blanks < line->length && strchr(" \t\r", line->text[blanks]) && line->text[blanks])
        blanks++;
    return blanks == line->length;
}

static int read_line(struct build *build, const struct line *line)
{
    struct rmm_row row;
    if (is_blank_line(line))
        return STATUS_OK;
    if (!line->is_ended && rmm_is_cut(&build->header, line->text, line->length)) {
        build->is_incomplete = true;
        return STATUS_OK;
    }
    int status = rmm_read_row(&build->header, line->text, line->length, build->line, &row, build->err);
    return status ? status : add_row(build, &row);
}

static size_t mark_length(const char *text, size_t length)
{
    size_t mark = strlen(BYTE_ORDER_MARK);
    return length >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0 ? mark : 0;
}

static int read_lines(struct build *build)
{
    struct line line;
    build->line = 1;
    int status = peek_line(build, &line);
    if (status)
        return status;
    size_t mark = mark_length(line.text, line.length);
    if (!rmm_read_header(line.text + mark, line.length - mark, &build->header))
        return error_set(build->err, STATUS_INPUT, "line 1: no header of an RMM log (" HEADER ")");
    for (input_skip(build->input, line.taken); !status; input_skip(build->input, line.taken)) {
        build->line++;
        status = peek_line(build, &line);
        if (status || !line.taken)
            break;
        status = read_line(build, &line);
    }
    return status ? status : input_check_end(build->input, build->err);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static int compare_live(const void *a, const void *b)
{
    const struct live *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static int build_state(struct build *build)
{
    struct state *state = &build->snapshot->end;
    if (build->live_count)
        qsort(build->live, build->live_count, sizeof(*build->live), compare_live);
    for (size_t i = 0; i < build->live_count; i++) {
        const struct live *live = &build->live[i];
        struct segment segment = {
            .address = live->address, .total_size = live->size, .allocated_size = live->size, .active_size = live->size,
            .requested_size = live->size, .stream = live->stream, .context = CONTEXT_NONE, .pool = NONE32,
            .device = build->device, .is_large = live->size > SMALL_REQUEST};
        struct block block = {.address = live->address, .size = live->size, .requested = live->size,
                              .context = CONTEXT_NONE, .state = BLOCK_ACTIVE_ALLOCATED};
        if (state_add_segment(state, &segment) || state_add_block(state, &block))
            return error_no_memory(build->err);
    }
    state->moment = build->snapshot->entries.count;
    return STATUS_OK;
}

static int build_facts(struct build *build)
{
    struct snapshot *snapshot = build->snapshot;
    uint32_t number = snapshot_device(snapshot, 0, build->device);
    if (number == NONE32)
        return error_no_memory(build->err);
    struct device *device = &snapshot->devices[number];
    device->has_stats = !build->is_too_heavy;
    device->stats_exact = device->has_stats && !build->is_incomplete;
    if (device->has_stats)
        device->stats = build->stats;
    snapshot->processes[0].implied_blocks = true;
    snapshot->processes[0].incomplete = build->is_incomplete;
    snapshot->trace_count = build->device + 1u;
    return STATUS_OK;
}

/* --- from outside ----------------------------------------------------------------------------------------------- */

bool rmm_is_log(const unsigned char *start, size_t length)
{
    struct rmm_header header;
    const unsigned char *end = length ? memchr(start, '\n', length) : NULL;
    size_t line = end ? (size_t)(end - start) : length;
    size_t mark = mark_length((const char *)start, line);
    return line <= RMM_LINE && rmm_read_header((const char *)start + mark, line - mark, &header);
}

uint16_t rmm_device_of_name(const char *path)
{
    const char *name = path ? strrchr(path, '/') : NULL;
    unsigned device = 0;
    for (name = name ? name : path; name && (name = strstr(name, ".dev")); name++) {
        const char *digits = name + 4, *at = digits;
        unsigned number = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            if (number < NO_DEVICE)
                number = number * 10 + (unsigned)(*at - '0');
        if (at > digits && (*at == '\0' || *at == '.'))
            device = number < NO_DEVICE ? number : NO_DEVICE;
    }
    return (uint16_t)device;
}

int rmm_read(struct input *input, uint16_t device, struct snapshot **result, struct error *err)
{
    struct build build = {.input = input, .device = device, .snapshot = snapshot_new(SOURCE_RMM), .err = err};
    *result = NULL;
    if (device == NO_DEVICE) {
        snapshot_free(build.snapshot);
        return error_set(err, STATUS_INPUT, "the number behind .dev in its name is no device's; rename the file");
    }
    memory_stats_init(&build.stats);
    int status = build.snapshot ? read_lines(&build) : error_no_memory(err);
    if (!status)
        status = build_state(&build);
    if (!status)
        status = build_facts(&build);
    if (status)
        snapshot_free(build.snapshot);
    else
        *result = build.snapshot;
    table_free(&build.threads);
    table_free(&build.index);
    free(build.live);
    return status;
}
