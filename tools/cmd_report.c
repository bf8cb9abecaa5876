/* cudamem report: who holds memory, or held it.  Uses analyze, format, render and base. */
#include "analyze/report.h"
#include "tools/category_files.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/report_out.h"

#include <string.h>

#define WITHIN 10u /* entries: what comes and goes in so few is churn */

static const char measures[] = "live|allocated|leak|temporary|waste";
static const char groups[] = "stack|function|file|library|stream|size|pool|device|annotation|owner|category";

static const struct option_spec report_options[] = {
    {"by", 0, "MEASURE", OPTION_CHOICE, "what counts: live (default), allocated, leak, temporary or waste", measures},
    {"group", 0, "KEY", OPTION_CHOICE, "who is charged: stack (default), function, owner, category or another key", groups},
    {"since", 0, "MOMENT", OPTION_TEXT, "with --by leak: what was allocated after it", "start|peak|oom|mark:"},
    {"within", 0, "N", OPTION_NUMBER, "with --by temporary: freed at most N entries later (default 10)"},
    {"tree", 0, NULL, OPTION_FLAG, "callers and what they call, each with all that is below it"},
    {"categories", 0, "FILE", OPTION_FILE, "rules of categories that come before the shipped ones"},
    OPTIONS_ROWS("bytes|count|waste|requested|name"),
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_SELECTION,
    OPTIONS_END,
};

/* The place of a choice in its list. */
static unsigned choice_of(const struct command_line *line, const char *option, const char *choices)
{
    const char *given = options_text(line, option);
    unsigned place = 0;
    for (const char *word = choices; given && *word; place++) {
        size_t length = strcspn(word, "|");
        if (strlen(given) == length && memcmp(word, given, length) == 0)
            return place;
        word += length + (word[length] == '|');
    }
    return 0;
}

/* --- run ------------------------------------------------------------------------------------------------------------ */

static int find_since(const struct command_line *line, const struct load *load, uint64_t *since)
{
    const char *text = options_text(line, "since");
    struct moment moment;
    struct error err = {0};
    if (!text)
        return EXIT_DONE;
    if (moment_parse(text, &moment, &err))
        return command_usage(line->command, "--since: %s", err.message);
    int device = load->selection.device < 0 ? MOMENT_ALL_DEVICES : load->selection.device;
    if (moment_resolve(load->snapshot, &moment, device, since, &err))
        return command_error(load->file, &err);
    if (*since > load->moment)
        return command_usage(line->command, "--since %s is after the moment that is looked at", text);
    return EXIT_DONE;
}

static int report_run(struct command_line *line)
{
    struct load load;
    struct error err = {0};
    struct report report;
    struct category_files categories;
    struct report_options options = {.by = (enum report_by)choice_of(line, "by", measures),
                                     .group = (enum report_group)choice_of(line, "group", groups),
                                     .within = options_number(line, "within", WITHIN)};
    if (options_has(line, "since") && options.by != REPORT_LEAK)
        return command_usage(line->command, "--since goes with --by leak");
    if (options_has(line, "within") && options.by != REPORT_TEMPORARY)
        return command_usage(line->command, "--within goes with --by temporary");
    if (options_has(line, "tree") && options.group != REPORT_STACK)
        return command_usage(line->command, "--tree goes with --group stack");
    if (options_has(line, "categories") && options.group != REPORT_CATEGORY)
        return command_usage(line->command, "--categories goes with --group category");
    int status = category_files_open(line, &categories);
    if (status)
        return status;
    options.rules = categories.sets;
    options.rule_sets = categories.count;
    status = load_open(line, line->arguments[0], LOAD_STATE, &load);
    if (!status) {
        options.user_frames = load.selection.user_frames;
        status = find_since(line, &load, &options.since);
        if (!status && report_make(load.snapshot, load.state, &load.selection, &options, &report, &err))
            status = command_error(load.file, &err);
        else if (!status) {
            status = report_out(line, &load, &report, &options);
            report_free(&report);
        }
        load_close(&load);
    }
    category_files_close(&categories);
    return status;
}

const struct command command_report = {
    .name = "report",
    .summary = "who holds memory, or held it, by stack, function, owner or category",
    .arguments = "[FILE[@MOMENT]]",
    .least = 0,
    .most = 1,
    .options = report_options,
    .run = report_run,
};
