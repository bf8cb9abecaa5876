/* Settings to try: their texts, the grid, neighbours.  May use src/snapshot, src/alloc (settings), src/base. */
#include "analyze/tune_settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define QUANTILES 6
#define LARGEST_MIB (UINT32_C(1) << 24) /* 16 TiB: no device has more */
#define LEAST_NON_SPLIT 32
#define MOST_NON_SPLIT 4096
#define MOST_DIVISIONS 64
#define DEFAULT_NON_SPLIT 20

static const struct tune_setting plain = {.last = TUNE_LAST_ENTRY};

/* --- texts ------------------------------------------------------------------------------------------------------ */

static const char *const searched[] = {"expandable_segments", "max_split_size_mb", "max_non_split_rounding_mb",
                                       "roundup_power2_divisions", "garbage_collection_threshold"};
#define ALWAYS_SEARCHED 4 /* of them, the others under a limit only */

static void add_word(struct text *text, const char *word)
{
    if (text->length)
        text_char(text, ',');
    text_add(text, word);
}

static bool is_searched(const char *option, bool collects)
{
    size_t count = collects ? sizeof(searched) / sizeof(searched[0]) : ALWAYS_SEARCHED, length = strcspn(option, ":");
    for (size_t i = 0; i < count; i++)
        if (strlen(searched[i]) == length && strncmp(option, searched[i], length) == 0)
            return true;
    return false;
}

/* Up to the next comma outside brackets, without blanks.  Returns what is behind it. */
static const char *next_option(const char *at, struct text *option)
{
    int depth = 0;
    text_clear(option);
    for (; *at && (*at != ',' || depth > 0); at++) {
        depth += (*at == '[') - (*at == ']');
        if (!isspace((unsigned char)*at))
            text_char(option, *at);
    }
    return *at ? at + 1 : at;
}

/* Characters that settings are made of: others would have to be quoted for a shell, and mean nothing. */
static bool is_plain(const char *option)
{
    return option[strspn(option, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.:,[]>")] == '\0';
}

void tune_kept(const char *recorded, bool collects, struct text *kept)
{
    struct text option = {0};
    while (*recorded) {
        recorded = next_option(recorded, &option);
        if (option.length && !is_searched(text_string(&option), collects) && is_plain(text_string(&option)))
            add_word(kept, text_string(&option));
        kept->failed = kept->failed || option.failed;
    }
    text_free(&option);
}

/* Divisions that are the same wherever they are not 0, which is in one run of entries. */
static void read_divisions(const uint32_t *divisions, struct tune_setting *setting)
{
    int first = 0, last = TUNE_LAST_ENTRY;
    while (first < TUNE_LAST_ENTRY && !divisions[first])
        first++;
    while (last > first && !divisions[last])
        last--;
    for (int entry = first; entry <= last; entry++)
        if (divisions[entry] != divisions[first] || divisions[entry] < 2 || divisions[entry] > MOST_DIVISIONS)
            return;
    setting->divisions = (uint16_t)divisions[first];
    setting->first = (uint8_t)first;
    setting->last = (uint8_t)last;
}

void tune_setting_read(const char *recorded, bool collects, struct tune_setting *setting)
{
    struct settings settings;
    *setting = plain;
    settings_init(&settings);
    if (settings_parse(&settings, recorded, NULL))
        return;
    setting->expandable = settings.expandable_segments;
    if (settings.max_split_size / SETTINGS_MIB < LARGEST_MIB)
        setting->max_split_mib = (uint32_t)(settings.max_split_size / SETTINGS_MIB);
    uint64_t rounding = settings.max_non_split_rounding / SETTINGS_MIB;
    if (rounding != DEFAULT_NON_SPLIT && rounding < LARGEST_MIB)
        setting->non_split_mib = (uint32_t)rounding;
    if (collects)
        setting->collect_percent = (uint8_t)(settings.garbage_collection_threshold * 100 + 0.4); /* below 100 */
    read_divisions(settings.roundup_divisions, setting);
}

/* A list names the first entry below which all is like it; what lies between and behind the named ones stays 0. */
static void write_divisions(const struct tune_setting *setting, struct text *text)
{
    add_word(text, "roundup_power2_divisions:");
    if (setting->first == 0 && setting->last == TUNE_LAST_ENTRY) {
        text_printf(text, "%u", (unsigned)setting->divisions);
        return;
    }
    text_char(text, '[');
    if (setting->first)
        text_printf(text, "%u:0,", 1u << (setting->first - 1));
    bool to_the_end = setting->last == TUNE_LAST_ENTRY && setting->first < TUNE_LAST_ENTRY;
    unsigned from = setting->first ? setting->first : setting->last, to = to_the_end ? setting->first : setting->last;
    for (unsigned entry = from; entry <= to; entry++)
        text_printf(text, "%s%u:%u", entry > from ? "," : "", 1u << entry, (unsigned)setting->divisions);
    if (to_the_end)
        text_printf(text, ",>:%u", (unsigned)setting->divisions);
    text_char(text, ']');
}

void tune_setting_write(const struct tune_setting *setting, const char *kept, struct text *text)
{
    text_add(text, kept);
    if (setting->expandable)
        add_word(text, "expandable_segments:True");
    if (setting->max_split_mib) {
        add_word(text, "max_split_size_mb:");
        text_printf(text, "%u", (unsigned)setting->max_split_mib);
    }
    if (setting->max_split_mib && setting->non_split_mib) {
        add_word(text, "max_non_split_rounding_mb:");
        text_printf(text, "%u", (unsigned)setting->non_split_mib);
    }
    if (setting->divisions)
        write_divisions(setting, text);
    if (setting->collect_percent) {
        add_word(text, "garbage_collection_threshold:");
        bool tenths = setting->collect_percent % 10 == 0;
        text_printf(text, tenths ? "0.%u" : "0.%02u", setting->collect_percent / (tenths ? 10u : 1u));
    }
}

unsigned tune_setting_options(const struct tune_setting *setting)
{
    bool list = setting->divisions && (setting->first || setting->last < TUNE_LAST_ENTRY);
    bool rounding = setting->max_split_mib && setting->non_split_mib;
    return (unsigned)setting->expandable + (setting->max_split_mib != 0) + rounding + (setting->divisions != 0) + list +
           (setting->collect_percent != 0);
}

/* --- the space --------------------------------------------------------------------------------------------------- */

static void add_split(struct tune_space *space, uint32_t mib)
{
    size_t at = 0;
    if (mib < space->least_split || space->split_count == TUNE_SPLITS)
        return;
    while (at < space->split_count && space->splits[at] < mib)
        at++;
    if (at < space->split_count && space->splits[at] == mib)
        return;
    memmove(&space->splits[at + 1], &space->splits[at], (space->split_count - at) * sizeof(space->splits[0]));
    space->splits[at] = mib;
    space->split_count++;
}

static int compare_sizes(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static bool is_request(const struct snapshot *snapshot, size_t entry, const struct replay_options *options)
{
    const struct entries *entries = &snapshot->entries;
    uint16_t process = entries->process ? entries->process[entry] : 0;
    enum action action = (enum action)entries->action[entry];
    bool implied = process < snapshot->process_count && snapshot->processes[process].implied_blocks;
    return process == options->process && entries->device[entry] == options->device &&
           (implied ? action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP : action == ACTION_ALLOC) &&
           !(entries->flags[entry] & (ENTRY_BAD | ENTRY_FAILED)) &&
           entries->size[entry] < (uint64_t)LARGEST_MIB * SETTINGS_MIB;
}

static void widen(struct tune_space *space, uint64_t size)
{
    uint8_t entry = 0;
    while (entry < TUNE_LAST_ENTRY && size >= UINT64_C(2) * SETTINGS_MIB << entry)
        entry++;
    if (entry < space->first)
        space->first = entry;
    if (entry > space->last)
        space->last = entry;
}

/* Where the bytes of the large requests lie: sizes (MiB) from which a sixth, two, ... of them is as large or larger. */
static void split_quantiles(struct tune_space *space, uint32_t *sizes, size_t count)
{
    uint64_t total = 0, sum = 0;
    unsigned quantile = 1;
    qsort(sizes, count, sizeof(*sizes), compare_sizes);
    for (size_t i = 0; i < count; i++)
        total += sizes[i];
    for (size_t i = 0; i < count; i++)
        for (sum += sizes[i]; quantile <= QUANTILES && sum >= total / QUANTILES * quantile; quantile++)
            add_split(space, sizes[i]);
    space->most_split = sizes[count - 1] + 2; /* segments are whole multiples of 2 MiB */
    for (uint32_t power = 32; power <= space->most_split; power *= 2)
        add_split(space, power);
}

int tune_space_find(const struct snapshot *snapshot, const struct replay_options *options, const char *recorded,
                    struct tune_space *space)
{
    const struct entries *entries = &snapshot->entries;
    size_t end = options->moment < entries->count ? (size_t)options->moment : entries->count, count = 0;
    struct settings settings;
    settings_init(&settings);
    bool known = settings_parse(&settings, recorded, NULL) == STATUS_OK;
    *space = (struct tune_space){.least_split = (uint32_t)(settings.large_segment_size / SETTINGS_MIB),
                                 .first = TUNE_LAST_ENTRY, .collects = options->limit != REPLAY_NO_LIMIT};
    uint32_t *sizes = malloc((end + 1) * sizeof(*sizes));
    if (!sizes)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < end; i++) {
        if (!is_request(snapshot, i, options))
            continue;
        widen(space, entries->size[i]);
        if (entries->size[i] / SETTINGS_MIB >= space->least_split)
            sizes[count++] = (uint32_t)(entries->size[i] / SETTINGS_MIB);
    }
    if (known && settings.max_split_size / SETTINGS_MIB < LARGEST_MIB)
        add_split(space, (uint32_t)(settings.max_split_size / SETTINGS_MIB));
    if (count) {
        add_split(space, space->least_split);
        split_quantiles(space, sizes, count);
    }
    if (space->first > space->last)
        space->first = space->last;
    free(sizes);
    return STATUS_OK;
}

/* --- the grid ---------------------------------------------------------------------------------------------------- */

int tune_grid(const struct tune_space *space, tune_add add, void *self)
{
    static const uint8_t percents[] = {50, 60, 70, 80, 90};
    int status = STATUS_OK;
    struct tune_setting setting = plain;
    for (int expandable = 0; expandable < 2; expandable++)
        for (uint16_t divisions = 1; divisions <= 16 && !status; divisions *= 2) {
            setting.expandable = expandable;
            setting.divisions = divisions == 1 ? 0 : divisions;
            status = add(self, &setting);
        }
    for (size_t i = 0; i < space->split_count; i++)
        for (unsigned kind = 0; kind < 3 && !status; kind++) {
            setting = plain;
            setting.max_split_mib = space->splits[i];
            setting.divisions = kind == 1 ? 8 : 0;
            setting.expandable = kind == 2;
            status = add(self, &setting);
        }
    for (size_t i = 0; i < sizeof(percents) && space->collects; i++)
        for (size_t split = 0; split < 3 && !status; split++) {
            setting = plain;
            setting.collect_percent = percents[i];
            if (split && space->split_count) /* a low and a high one */
                setting.max_split_mib = space->splits[split * (space->split_count - 1) / 2];
            status = add(self, &setting);
        }
    return status;
}

/* --- neighbours -------------------------------------------------------------------------------------------------- */

static int near_splits(const struct tune_space *space, struct tune_setting setting, tune_add add, void *self)
{
    uint32_t mib = setting.max_split_mib, lower = 0, upper = 0;
    if (!mib) {
        if (!space->split_count)
            return STATUS_OK;
        setting.max_split_mib = space->splits[space->split_count / 2];
        return add(self, &setting);
    }
    for (size_t i = 0; i < space->split_count; i++) {
        if (space->splits[i] < mib)
            lower = space->splits[i];
        if (space->splits[i] > mib && !upper)
            upper = space->splits[i];
    }
    const uint32_t tries[] = {lower, upper, mib - mib / 4, mib + mib / 4, mib - mib / 8, mib + mib / 8};
    int status = STATUS_OK;
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]) && !status; i++) {
        if (tries[i] < space->least_split || tries[i] > space->most_split)
            continue;
        setting.max_split_mib = tries[i];
        status = add(self, &setting);
    }
    return status;
}

static int near_roundings(struct tune_setting setting, tune_add add, void *self)
{
    uint32_t mib = setting.non_split_mib;
    int status = STATUS_OK;
    if (!setting.max_split_mib)
        return status;
    const uint32_t tries[] = {mib ? mib / 2 : 64, mib ? mib * 2 : 256};
    for (size_t i = 0; i < 2 && !status; i++) {
        setting.non_split_mib = tries[i] < LEAST_NON_SPLIT || tries[i] > MOST_NON_SPLIT ? 0 : tries[i];
        status = add(self, &setting);
    }
    return status;
}

/* Divisions where there were none: for the smaller or the larger requests, cut at a quarter, half, three quarters. */
static int first_divisions(const struct tune_space *space, struct tune_setting setting, tune_add add, void *self)
{
    int status = STATUS_OK;
    setting.divisions = 8;
    for (int quarter = 1; quarter < 4 && !status; quarter++) {
        uint8_t cut = (uint8_t)(space->first + (space->last - space->first) * quarter / 4);
        setting.first = 0;
        setting.last = cut;
        status = add(self, &setting);
        if (status || cut == space->last)
            continue;
        setting.first = cut + 1;
        setting.last = TUNE_LAST_ENTRY;
        status = add(self, &setting);
    }
    return status;
}

static int near_divisions(const struct tune_space *space, const struct tune_setting *setting, tune_add add, void *self)
{
    uint16_t divisions = setting->divisions;
    int status = STATUS_OK;
    if (!divisions)
        return first_divisions(space, *setting, add, self);
    const uint16_t tries[] = {divisions * 2 > MOST_DIVISIONS ? 0 : divisions * 2, divisions == 2 ? 0 : divisions / 2};
    for (size_t i = 0; i < 2 && !status; i++) {
        struct tune_setting other = *setting;
        other.divisions = tries[i];
        if (!other.divisions)
            other.first = 0, other.last = TUNE_LAST_ENTRY;
        status = add(self, &other);
    }
    return status;
}

/* Where the divisions hold: each end of the range one entry in and out, as far as there are requests. */
static int near_ranges(const struct tune_space *space, struct tune_setting setting, tune_add add, void *self)
{
    if (!setting.divisions || space->first == space->last)
        return STATUS_OK;
    int first = setting.first < space->first ? space->first : setting.first;
    int last = setting.last > space->last ? space->last : setting.last;
    const int tries[][2] = {{first + 1, last}, {first - 1, last}, {first, last - 1}, {first, last + 1}};
    int status = STATUS_OK;
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]) && !status; i++) {
        if (tries[i][0] > tries[i][1])
            continue;
        setting.first = (uint8_t)(tries[i][0] <= space->first ? 0 : tries[i][0]);
        setting.last = (uint8_t)(tries[i][1] >= space->last ? TUNE_LAST_ENTRY : tries[i][1]);
        status = add(self, &setting);
    }
    return status;
}

static int near_thresholds(const struct tune_space *space, struct tune_setting setting, tune_add add, void *self)
{
    int percent = setting.collect_percent, status = STATUS_OK;
    if (!space->collects)
        return status;
    const int tries[] = {percent ? percent - 5 : 60, percent ? percent + 5 : 80};
    for (size_t i = 0; i < 2 && !status; i++) {
        setting.collect_percent = (uint8_t)(tries[i] < 5 || tries[i] > 95 ? 0 : tries[i]);
        status = add(self, &setting);
    }
    return status;
}

int tune_neighbours(const struct tune_space *space, const struct tune_setting *setting, tune_add add, void *self)
{
    struct tune_setting other = *setting;
    other.expandable = !other.expandable;
    int status = add(self, &other);
    if (!status)
        status = near_splits(space, *setting, add, self);
    if (!status)
        status = near_divisions(space, setting, add, self);
    if (!status)
        status = near_roundings(*setting, add, self);
    if (!status)
        status = near_ranges(space, *setting, add, self);
    if (!status)
        status = near_thresholds(space, *setting, add, self);
    return status;
}
