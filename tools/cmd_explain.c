/* cudamem explain: an out of memory, or the peak, in words.  Uses analyze, format, render and base. */
#include "analyze/explain.h"
#include "format/slice.h"
#include "render/explain_json.h"
#include "render/explain_text.h"
#include "snapshot/state.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/progress.h"
#include "tools/replay_options.h"

#include <inttypes.h>
#include <stdio.h>

#define ROWS 5
#define PROGRESS_STEPS 144 /* of a search for settings */

static const struct option_spec explain_options[] = {
    OPTIONS_LIMIT,
    {"stacks", 0, NULL, OPTION_FLAG, "whole stacks, not only the first frame of the program's own"},
    {"no-settings", 0, NULL, OPTION_FLAG, "do not look for settings that would have helped"},
    {"rows", 'n', "N", OPTION_NUMBER, "at most N rows of each list (default: 5; all with --json)"},
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    OPTIONS_POOLS,
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

struct session {
    struct command_line *line;
    struct load load;
    struct explain_options options;
    struct explain explain;
    char moment[280]; /* as the text names it */
};

/* The recording up to the moment, with blocks as they were where a replay knows. */
static int cut(struct session *session, struct error *err)
{
    struct load *load = &session->load;
    struct snapshot *snapshot = load->snapshot;
    uint64_t moment = load->moment;
    bool is_peak = !load->has_moment;
    session->options.has_trace = snapshot->entries.count > 0;
    if (!load->has_moment) {
        int status = explain_moment(snapshot, load->selection.device, &moment, err);
        if (status)
            return status;
    }
    snprintf(session->moment, sizeof(session->moment), "%s",
             is_peak ? snapshot->entries.count ? "peak" : "end" : load->moment_text);
    if (!snapshot->entries.count || moment == snapshot->entries.count)
        return state_mark_before_recording(snapshot, &snapshot->end, err);
    int status = slice_entries(snapshot, 0, moment, NULL, false, err);
    return status ? status : replay_mend_end(snapshot, err);
}

static int explain_it(struct session *session)
{
    struct replay_options *replay = &session->options.replay;
    struct error err = {0};
    int status = cut(session, &err);
    if (status)
        return command_error(session->load.file, &err);
    explain_place(session->load.snapshot, session->load.selection.device, &replay->process, &replay->device);
    session->options.skips_settings = options_has(session->line, "no-settings");
    session->options.progress = progress_at;
    progress_start("trying settings", PROGRESS_STEPS);
    status = explain_collect(session->load.snapshot, &session->options, &session->explain, &err);
    progress_stop();
    return status ? command_error(session->load.file, &err) : EXIT_DONE;
}

static int text_out(struct session *session, struct emitter *emitter, bool exact_bytes, struct error *err)
{
    struct text text = {0};
    const struct explain_words words = {.exact_bytes = exact_bytes, .whole_stacks = options_has(session->line, "stacks"),
                                        .rows = options_number(session->line, "rows", ROWS), .moment = session->moment};
    int status = explain_text(&session->explain, &words, &text, err);
    if (!status)
        emitter_verbatim(emitter, text_string(&text), text.length);
    text_free(&text);
    return status;
}

static int write_out(struct session *session)
{
    struct output *output = NULL;
    struct error err = {0};
    int status = command_open_output(session->line, CONTENT_TEXT, NULL, &output);
    if (status)
        return status;
    struct emitter_options options = command_emitter_options(session->line);
    struct emitter *emitter = emitter_new(output, &options);
    if (emitter && options.json)
        status = explain_json(emitter, &session->explain, options_number(session->line, "rows", SIZE_MAX), &err);
    else if (emitter)
        status = text_out(session, emitter, options.exact_bytes, &err);
    if (!status)
        return command_finish(emitter, output, EXIT_DONE);
    emitter_finish(emitter, NULL);
    output_abandon(output);
    return command_error(NULL, &err);
}

static int explain_run(struct command_line *line)
{
    struct session session = {.line = line};
    int status = replay_options_limit(line, &session.options.replay);
    if (!status)
        status = replay_options_pools(line, &session.options.replay);
    if (!status)
        status = load_open(line, line->arguments[0], 0, &session.load);
    if (status)
        return status;
    status = replay_options_check(line, &session.load, &session.options.replay);
    if (!status)
        status = explain_it(&session);
    if (!status)
        status = write_out(&session);
    explain_free(&session.explain);
    load_close(&session.load);
    return status;
}

const struct command command_explain = {
    .name = "explain",
    .summary = "why memory ran out, or what the peak was made of, in words",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = explain_options,
    .run = explain_run,
};
