/* Settings of the allocator: parsing, checks, rounding.  Uses src/base. */
#include "alloc/settings.h"

#include "alloc/allocator.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void settings_init(struct settings *settings)
{
    *settings = (struct settings){
        .max_split_size = SETTINGS_UNLIMITED,
        .max_non_split_rounding = 20 * SETTINGS_MIB,
        .large_segment_size = 20 * SETTINGS_MIB,
        .per_process_memory_fraction = 1,
        .pinned_num_register_threads = 1,
    };
}

/* A walk over the text: words and the separators , : [ ] with blanks left out. */
struct scan {
    const char *text, *at;
    char word[128];
    int place; /* where the word begins, from 0 */
    char separator; /* when the word is empty: , : [ ] or 0 at the end */
    struct error *err;
};

static void scan_next(struct scan *scan)
{
    size_t length = 0;
    while (isspace((unsigned char)*scan->at))
        scan->at++;
    scan->place = (int)(scan->at - scan->text);
    scan->word[0] = '\0';
    scan->separator = *scan->at;
    if (!*scan->at || strchr(",:[]", *scan->at)) {
        if (*scan->at)
            scan->at++;
        return;
    }
    for (; *scan->at && !strchr(",:[]", *scan->at); scan->at++)
        if (!isspace((unsigned char)*scan->at) && length < sizeof(scan->word) - 1)
            scan->word[length++] = *scan->at;
    scan->word[length] = '\0';
    scan->separator = 0;
}

static int scan_fault(const struct scan *scan, const char *key, const char *what)
{
    if (scan->word[0])
        return error_set(scan->err, STATUS_USAGE, "%s: '%s' at character %d: %s", key, scan->word, scan->place + 1,
                         what);
    return error_set(scan->err, STATUS_USAGE, "%s: at character %d: %s", key, scan->place + 1, what);
}

/* As there, what follows the digits is not looked at, and a sign is taken: -1 is the largest number. */
static int scan_number(const struct scan *scan, const char *key, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(scan->word, &end, 10);
    if (end == scan->word)
        return scan_fault(scan, key, "a whole number is needed");
    if (errno)
        return scan_fault(scan, key, "a number of 64 bits is needed");
    *number = parsed;
    return STATUS_OK;
}

static int scan_real(const struct scan *scan, const char *key, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(scan->word, &end);
    if (end == scan->word)
        return scan_fault(scan, key, "a number is needed");
    return errno ? scan_fault(scan, key, "a number that a double holds is needed") : STATUS_OK;
}

static int scan_bool(const struct scan *scan, const char *key, bool *truth)
{
    if (strcmp(scan->word, "True") != 0 && strcmp(scan->word, "False") != 0)
        return scan_fault(scan, key, "True or False is needed");
    *truth = scan->word[0] == 'T';
    return STATUS_OK;
}

static bool power_of_two(uint64_t n)
{
    return n && !(n & (n - 1));
}

static int log2_floor(uint64_t n)
{
    return n ? 63 - __builtin_clzll(n) : 0;
}

/* MiB to bytes, capped at the last whole MiB where bytes would not fit. */
static uint64_t mib(uint64_t n)
{
    return (n > UINT64_MAX / SETTINGS_MIB ? UINT64_MAX / SETTINGS_MIB : n) * SETTINGS_MIB;
}

/* A size in MiB that must not be under the large segment's. */
static int scan_large_size(struct scan *scan, const struct settings *settings, const char *key, uint64_t *bytes)
{
    uint64_t n, least = settings->large_segment_size / SETTINGS_MIB;
    char what[80];
    if (scan_number(scan, key, &n))
        return STATUS_USAGE;
    snprintf(what, sizeof(what), "too small, it must be at least the large segment's %" PRIu64 " MiB", least);
    if (n < least)
        return scan_fault(scan, key, what);
    *bytes = mib(n);
    return STATUS_OK;
}

static int parse_max_split(struct scan *scan, struct settings *settings)
{
    return scan_large_size(scan, settings, "max_split_size_mb", &settings->max_split_size);
}

static int parse_non_split(struct scan *scan, struct settings *settings)
{
    return scan_large_size(scan, settings, "max_non_split_rounding_mb", &settings->max_non_split_rounding);
}

static int parse_large_segment(struct scan *scan, struct settings *settings)
{
    uint64_t n;
    if (scan_number(scan, "large_segment_size_mb", &n))
        return STATUS_USAGE;
    if (n <= 10)
        return scan_fault(scan, "large_segment_size_mb", "too small, it must be more than 10 MiB");
    settings->large_segment_size = mib(n);
    return STATUS_OK;
}

static int parse_threshold(struct scan *scan, struct settings *settings)
{
    double n;
    if (scan_real(scan, "garbage_collection_threshold", &n))
        return STATUS_USAGE;
    if (!(n > 0 && n < 1))
        return scan_fault(scan, "garbage_collection_threshold", "it must lie between 0 and 1, both excluded");
    settings->garbage_collection_threshold = n;
    return STATUS_OK;
}

static int parse_fraction(struct scan *scan, struct settings *settings)
{
    double n;
    if (scan_real(scan, "per_process_memory_fraction", &n))
        return STATUS_USAGE;
    if (!(n >= 0 && n <= 1))
        return scan_fault(scan, "per_process_memory_fraction", "it must lie between 0 and 1");
    settings->per_process_memory_fraction = n;
    return STATUS_OK;
}

static int parse_pinned_threads(struct scan *scan, struct settings *settings)
{
    uint64_t n;
    if (scan_number(scan, "pinned_num_register_threads", &n))
        return STATUS_USAGE;
    if (!power_of_two(n) || n > 128)
        return scan_fault(scan, "pinned_num_register_threads", "it must be a power of two, at most 128");
    settings->pinned_num_register_threads = n;
    return STATUS_OK;
}

static int parse_pinned_reserve(struct scan *scan, struct settings *settings)
{
    uint64_t n;
    if (scan_number(scan, "pinned_reserve_segment_size_mb", &n))
        return STATUS_USAGE;
    if (!n)
        return scan_fault(scan, "pinned_reserve_segment_size_mb", "it must be more than 0");
    settings->pinned_reserve_segment_size = mib(n);
    return STATUS_OK;
}

static int parse_backend(struct scan *scan, struct settings *settings)
{
    (void)settings;
    if (strcmp(scan->word, "native") == 0)
        return STATUS_OK;
    return scan_fault(scan, "backend", strcmp(scan->word, "cudaMallocAsync") == 0
                                           ? "only the native allocator is modelled here"
                                           : "unknown backend, native is needed");
}

/* One pair of a list: boundary in MiB (or '>' for the rest) and divisions. */
static int parse_roundup_pair(struct scan *scan, struct settings *settings, int *last)
{
    uint64_t boundary = 0, divisions;
    bool rest = strcmp(scan->word, ">") == 0;
    if (!rest && (scan_number(scan, "roundup_power2_divisions", &boundary) || !power_of_two(boundary)))
        return scan_fault(scan, "roundup_power2_divisions", "a boundary must be a power of two in MiB, or '>'");
    scan_next(scan);
    if (scan->separator != ':')
        return scan_fault(scan, "roundup_power2_divisions", "':' is needed after a boundary");
    scan_next(scan);
    if (scan_number(scan, "roundup_power2_divisions", &divisions))
        return STATUS_USAGE;
    if ((divisions && !power_of_two(divisions)) || divisions > UINT32_MAX)
        return scan_fault(scan, "roundup_power2_divisions", "divisions must be a power of two, or 0");
    int entry = rest ? SETTINGS_ROUNDUP_ENTRIES - 1 : log2_floor(boundary);
    if (entry > SETTINGS_ROUNDUP_ENTRIES - 1)
        entry = SETTINGS_ROUNDUP_ENTRIES - 1;
    /* the first boundary fills everything below, '>' everything after the last one named */
    for (int i = rest || *last < 0 ? *last + 1 : entry; i <= entry; i++)
        settings->roundup_divisions[i] = (uint32_t)divisions;
    *last = entry;
    return STATUS_OK;
}

static int parse_roundup(struct scan *scan, struct settings *settings)
{
    if (scan->separator != '[') {
        uint64_t n;
        if (scan_number(scan, "roundup_power2_divisions", &n))
            return STATUS_USAGE;
        if (!power_of_two(n) || n > UINT32_MAX)
            return scan_fault(scan, "roundup_power2_divisions", "divisions must be a power of two");
        for (int i = 0; i < SETTINGS_ROUNDUP_ENTRIES; i++)
            settings->roundup_divisions[i] = (uint32_t)n;
        return STATUS_OK;
    }
    int last = -1;
    for (;;) {
        scan_next(scan);
        if (!scan->word[0])
            return scan_fault(scan, "roundup_power2_divisions", "a boundary in MiB is needed");
        if (parse_roundup_pair(scan, settings, &last))
            return STATUS_USAGE;
        scan_next(scan);
        if (scan->separator == ']')
            return STATUS_OK;
        if (scan->separator != ',')
            return scan_fault(scan, "roundup_power2_divisions", "',' or ']' is needed after a pair");
    }
}

#define PARSE_BOOL(name, field) \
    static int parse_##field(struct scan *scan, struct settings *settings) \
    { \
        return scan_bool(scan, name, &settings->field); \
    }
PARSE_BOOL("expandable_segments", expandable_segments)
PARSE_BOOL("graph_capture_record_stream_reuse", graph_capture_record_stream_reuse)
PARSE_BOOL("release_lock_on_cudamalloc", release_lock_on_device_malloc)
PARSE_BOOL("pinned_use_background_threads", pinned_use_background_threads)
PARSE_BOOL("pinned_use_cuda_host_register", pinned_use_host_register)

/* Those of every accelerator are applied first, then CUDA's own: where the latter are wrong, the former are in force. */
static const struct option {
    const char *key;
    bool is_common;
    int (*parse)(struct scan *scan, struct settings *settings);
} options[] = {
    {"max_split_size_mb", true, parse_max_split},
    {"max_non_split_rounding_mb", true, parse_non_split},
    {"large_segment_size_mb", true, parse_large_segment},
    {"garbage_collection_threshold", true, parse_threshold},
    {"roundup_power2_divisions", true, parse_roundup},
    {"expandable_segments", true, parse_expandable_segments},
    {"pinned_use_background_threads", true, parse_pinned_use_background_threads},
    {"graph_capture_record_stream_reuse", false, parse_graph_capture_record_stream_reuse},
    {"release_lock_on_cudamalloc", false, parse_release_lock_on_device_malloc},
    {"per_process_memory_fraction", false, parse_fraction},
    {"backend", false, parse_backend},
    {"pinned_use_cuda_host_register", false, parse_pinned_use_host_register},
    {"pinned_num_register_threads", false, parse_pinned_threads},
    {"pinned_reserve_segment_size_mb", false, parse_pinned_reserve},
};

static const struct option *option_find(const char *key)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strcmp(options[i].key, key) == 0)
            return &options[i];
    return NULL;
}

/* Past a value of which this reading takes no notice. */
static int skip_value(struct scan *scan, const char *key)
{
    if (!scan->word[0] && scan->separator != '[')
        return scan_fault(scan, key, "a value is needed");
    if (scan->separator == '[')
        while (scan->separator != ']' && (scan->word[0] || scan->separator))
            scan_next(scan);
    return STATUS_OK;
}

/* The key just read, with its value and what ends it. */
static int parse_setting(struct scan *scan, struct settings *settings, bool common)
{
    const struct option *option = option_find(scan->word);
    const struct scan name = *scan;
    scan_next(scan);
    if (!option && (!common || scan->separator != ':'))
        return error_set(scan->err, STATUS_USAGE, "unknown setting '%s' at character %d", name.word, name.place + 1);
    if (scan->separator != ':')
        return scan_fault(scan, name.word, "':' and a value are needed");
    scan_next(scan);
    if (option && option->is_common == common ? option->parse(scan, settings) : skip_value(scan, name.word))
        return STATUS_USAGE;
    scan_next(scan);
    if (scan->word[0] || (scan->separator && scan->separator != ','))
        return scan_fault(scan, name.word, "',' is needed before the next setting");
    return STATUS_OK;
}

static int parse_settings(struct settings *settings, const char *text, struct error *err, bool common)
{
    struct scan scan = {.text = text, .at = text, .err = err};
    for (scan_next(&scan); scan.word[0]; scan_next(&scan)) {
        if (parse_setting(&scan, settings, common))
            return STATUS_USAGE;
        if (!scan.separator)
            return STATUS_OK;
    }
    if (scan.separator)
        return error_set(err, STATUS_USAGE, "'%c' at character %d: a setting's name is needed", scan.separator,
                         scan.place + 1);
    return STATUS_OK;
}

int settings_parse(struct settings *settings, const char *text, struct error *err)
{
    settings->max_split_size = SETTINGS_UNLIMITED;
    settings->garbage_collection_threshold = 0;
    memset(settings->roundup_divisions, 0, sizeof(settings->roundup_divisions));
    int status = parse_settings(settings, text, err, true);
    return status ? status : parse_settings(settings, text, err, false);
}

static uint32_t settings_divisions(const struct settings *settings, uint64_t size)
{
    int entry = log2_floor(size) - 20;
    if (entry < 0)
        entry = 0;
    if (entry > SETTINGS_ROUNDUP_ENTRIES - 1)
        entry = SETTINGS_ROUNDUP_ENTRIES - 1;
    return settings->roundup_divisions[entry];
}

uint64_t settings_round(const struct settings *settings, uint64_t requested)
{
    if (requested < ALLOCATOR_MIN_BLOCK)
        return ALLOCATOR_MIN_BLOCK;
    uint64_t divisions = settings_divisions(settings, requested);
    if (divisions > 1 && requested > ALLOCATOR_MIN_BLOCK * divisions) {
        if (power_of_two(requested))
            return requested;
        uint64_t step = (UINT64_C(1) << log2_floor(requested)) >> log2_floor(divisions);
        return (requested + step - 1) & ~(step - 1);
    }
    return (requested + ALLOCATOR_MIN_BLOCK - 1) & ~(ALLOCATOR_MIN_BLOCK - 1);
}

uint64_t settings_segment_size(const struct settings *settings, uint64_t rounded)
{
    if (rounded <= ALLOCATOR_SMALL_LIMIT)
        return ALLOCATOR_SMALL_SEGMENT;
    if (rounded < ALLOCATOR_LARGE_LIMIT)
        return settings->large_segment_size;
    return (rounded + ALLOCATOR_LARGE_ROUNDING - 1) & ~(ALLOCATOR_LARGE_ROUNDING - 1);
}
