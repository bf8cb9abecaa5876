/* cudamem check: a gate on what a recording may have done.  Uses analyze, format, render and base. */
#include "analyze/check.h"
#include "analyze/replay.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/replay_options.h"
#include "tools/statistics_out.h"

#include <stdlib.h>
#include <string.h>

static const struct option_spec check_options[] = {
    {"max-peak", 0, "SIZE", OPTION_SIZE, "no device had more allocated"},
    {"max-peak-reserved", 0, "SIZE", OPTION_SIZE, "no device had more reserved"},
    {"max-retries", 0, "N", OPTION_NUMBER, "no allocator gave its cache back more often to go on"},
    {"no-oom", 0, NULL, OPTION_FLAG, "no request failed"},
    {"complete", 0, NULL, OPTION_FLAG, "no entry was lost"},
    {"max-growth", 0, "SIZE", OPTION_SIZE, "no more is alive than at --since and this"},
    {"no-leaks", 0, NULL, OPTION_FLAG, "nothing allocated after --since is alive"},
    {"since", 0, "MOMENT", OPTION_TEXT, "for --max-growth and --no-leaks (default: start)", "start|peak|oom|mark:"},
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    OPTIONS_LIMIT,
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

static const struct emitter_column check_columns[] = {
    {"verdict", NULL, EMITTER_STRING}, {"condition", NULL, EMITTER_STRING}, {"file", NULL, EMITTER_STRING},
    {"process", NULL, EMITTER_NUMBER}, {"device", NULL, EMITTER_NUMBER},    {"value", NULL, EMITTER_NUMBER},
    {"limit", NULL, EMITTER_NUMBER},   {"detail", NULL, EMITTER_STRING},
};

/* The findings of all files. */
struct findings {
    struct check_finding *items;
    const char **files; /* of each */
    size_t count, capacity;
};

static struct check_finding *add_finding(struct findings *findings, const char *file)
{
    if (findings->count == findings->capacity) {
        size_t capacity = findings->capacity ? findings->capacity * 2 : 16;
        struct check_finding *items = realloc(findings->items, capacity * sizeof(*items));
        if (items)
            findings->items = items;
        const char **files = realloc(findings->files, capacity * sizeof(*files));
        if (files)
            findings->files = files;
        if (!items || !files)
            return NULL;
        findings->capacity = capacity;
    }
    findings->files[findings->count] = file;
    return &findings->items[findings->count++];
}

/* --- one file --------------------------------------------------------------------------------------------------------- */

static int find_since(const struct command_line *line, const struct load *load, struct check_subject *subject)
{
    const char *text = options_text(line, "since");
    struct moment moment;
    struct error err = {0};
    subject->from_start = true;
    if (!text)
        return EXIT_DONE;
    if (moment_parse(text, &moment, &err))
        return command_usage(line->command, "--since: %s", err.message);
    int device = load->selection.device < 0 ? MOMENT_ALL_DEVICES : load->selection.device;
    if (moment_resolve(load->snapshot, &moment, device, &subject->since, &err))
        return command_error(load->file, &err);
    subject->from_start = subject->since == 0;
    if (subject->since > load->moment)
        return command_usage(line->command, "--since %s is after the moment that is looked at", text);
    return EXIT_DONE;
}

/* Has the file anything of what is selected? */
static bool is_there(const struct load *load, const struct statistics_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (statistics_are_selected(load, &list->items[i]))
            return true;
    return false;
}

static int check_one(const struct command_line *line, const struct load *load, const char *name,
                     const struct check_subject *subject, const struct statistics_list *list, enum check_condition condition,
                     struct findings *findings)
{
    uint64_t limit = options_number(line, check_name(condition), 0);
    struct error err = {0};
    if (!is_there(load, list)) {
        struct check_finding *finding = add_finding(findings, name);
        if (!finding)
            return command_error(NULL, (error_no_memory(&err), &err));
        *finding = (struct check_finding){.condition = condition, .verdict = CHECK_CANNOT_TELL, .limit = limit,
                                          .bound = STATISTICS_UNKNOWN, .reason = "the file has nothing of this device"};
        return EXIT_DONE;
    }
    size_t sets = check_is_of_device(condition) ? list->count : 1;
    for (size_t i = 0; i < sets; i++) {
        if (check_is_of_device(condition) && !statistics_are_selected(load, &list->items[i]))
            continue;
        struct check_finding *finding = add_finding(findings, name);
        int status = !finding ? error_no_memory(&err)
                     : check_is_of_device(condition)
                         ? check_device(subject, condition, limit, &list->items[i], finding, &err)
                         : check_all(subject, condition, limit, finding, &err);
        if (status)
            return command_error(load->file, &err);
    }
    return EXIT_DONE;
}

static int check_loaded(const struct command_line *line, struct load *load, const char *name, struct replay_options *replay,
                        struct findings *findings)
{
    struct check_subject subject = {load->snapshot, load->state, &load->selection, 0, load->moment, false};
    struct statistics_list list = {0};
    struct error err = {0};
    int status = find_since(line, load, &subject);
    if (!status)
        status = replay_options_check(line, load, replay);
    if (!status && statistics_collect(load->snapshot, load->state, replay_statistics, replay, &list, &err))
        status = command_error(load->file, &err);
    for (int condition = 0; !status && condition < CHECK_CONDITIONS; condition++)
        if (options_has(line, check_name((enum check_condition)condition)))
            status = check_one(line, load, name, &subject, &list, (enum check_condition)condition, findings);
    statistics_free(&list);
    return status;
}

static int check_file(const struct command_line *line, const char *argument, struct findings *findings)
{
    struct load load;
    struct replay_options replay = {0};
    int status = replay_options_limit(line, &replay);
    if (!status)
        status = load_open(line, argument, LOAD_STATE, &load);
    if (status)
        return status;
    status = check_loaded(line, &load, argument ? argument : "snapshot.bin", &replay, findings);
    load_close(&load);
    return status;
}

/* --- what comes out ----------------------------------------------------------------------------------------------------- */

static void put_number(struct emitter *emitter, const struct check_finding *finding, uint64_t number)
{
    if (check_is_bytes(finding->condition))
        emitter_size(emitter, NULL, number);
    else
        emitter_count(emitter, NULL, number);
}

static void put_row(struct emitter *emitter, const struct check_finding *finding, const char *file)
{
    static const char *const verdicts[] = {"holds", "broken", "cannot tell"};
    emitter_row(emitter);
    emitter_text(emitter, NULL, verdicts[finding->verdict]);
    emitter_text(emitter, NULL, check_name(finding->condition));
    emitter_string(emitter, NULL, file, strlen(file));
    if (finding->of_device) {
        emitter_count(emitter, NULL, finding->process);
        emitter_count(emitter, NULL, finding->device);
    } else {
        emitter_text(emitter, NULL, NULL);
        emitter_text(emitter, NULL, NULL);
    }
    if (finding->bound == STATISTICS_UNKNOWN)
        emitter_text(emitter, NULL, NULL);
    else
        put_number(emitter, finding, finding->value);
    put_number(emitter, finding, finding->limit);
    emitter_text(emitter, NULL, finding->reason ? finding->reason : finding->who[0] ? finding->who : NULL);
}

/* In text only what does not hold; in JSON everything. */
static void put_findings(struct emitter *emitter, const struct findings *findings, bool all_hold)
{
    emitter_bool(emitter, "passed", all_hold);
    emitter_begin_table(emitter, "conditions", "", check_columns, sizeof(check_columns) / sizeof(check_columns[0]));
    for (size_t i = 0; i < findings->count; i++)
        if (emitter_is_json(emitter) || findings->items[i].verdict != CHECK_HOLDS)
            put_row(emitter, &findings->items[i], findings->files[i]);
    emitter_end(emitter);
}

static int write_out(const struct command_line *line, const struct findings *findings)
{
    struct output *output;
    bool all_hold = true;
    for (size_t i = 0; i < findings->count; i++)
        all_hold &= findings->items[i].verdict == CHECK_HOLDS;
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    struct emitter_options options = command_emitter_options(line);
    struct emitter *emitter = emitter_new(output, &options);
    if (emitter && (emitter_is_json(emitter) || !all_hold))
        put_findings(emitter, findings, all_hold);
    return command_finish(emitter, output, all_hold ? EXIT_DONE : EXIT_NO);
}

static int check_run(struct command_line *line)
{
    struct findings findings = {0};
    size_t asked = 0;
    for (int condition = 0; condition < CHECK_CONDITIONS; condition++)
        asked += options_has(line, check_name((enum check_condition)condition));
    if (!asked)
        return command_usage(line->command, "no condition is given, such as --no-oom or --max-peak 20GiB");
    if (options_has(line, "since") && !options_has(line, "max-growth") && !options_has(line, "no-leaks"))
        return command_usage(line->command, "--since goes with --max-growth or --no-leaks");
    int status = EXIT_DONE;
    for (size_t i = 0; !status && i < (line->argument_count ? line->argument_count : 1); i++)
        status = check_file(line, line->arguments[i], &findings);
    if (!status)
        status = write_out(line, &findings);
    free(findings.items);
    free(findings.files);
    return status;
}

const struct command command_check = {
    .name = "check",
    .summary = "a gate: exit status 1 if a recording breaks a condition",
    .arguments = "[FILE[@MOMENT]...]",
    .most = ARGUMENTS_ANY,
    .options = check_options,
    .run = check_run,
};
