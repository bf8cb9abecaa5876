/* cudamem replay: the requests of a recording under its own and other settings.  Uses analyze, render, alloc and base. */
#include "alloc/settings.h"
#include "analyze/replay.h"
#include "tools/command.h"
#include "tools/load.h"
#include "tools/replay_options.h"
#include "tools/replay_out.h"

#include <string.h>

static const struct option_spec replay_options[] = {
    {"conf", 0, "SETTINGS", OPTION_TEXT, "as PYTORCH_CUDA_ALLOC_CONF; may be repeated (default: the recorded ones)"},
    OPTIONS_LIMIT,
    OPTIONS_POOLS,
    {"verify", 0, NULL, OPTION_FLAG, "does everything come out as recorded? exit status 1 if not"},
    {"device", 0, "N|all", OPTION_SELECTION, "only this device", "all"},
    OPTIONS_INPUT,
    OPTIONS_OUTPUT,
    OPTIONS_TABLE,
    OPTIONS_END,
};

/* What one run of the command works on. */
struct session {
    const struct command_line *line;
    struct load load;
    struct replay_options options;
    struct replay_place places[REPLAY_PLACES];
    size_t place_count;
    struct emitter *emitter;
    bool exact; /* all devices are */
};

static enum replay_shown shown_places(const struct session *session)
{
    if (session->load.snapshot->process_count > 1)
        return REPLAY_SHOWS_PROCESS;
    return session->place_count > 1 || emitter_is_json(session->emitter) ? REPLAY_SHOWS_DEVICE : REPLAY_SHOWS_NO_PLACE;
}

static int verify_place(struct session *session, const struct replay_plan *plan, const struct replay_place *place)
{
    const struct replay_trial recorded = {NULL, session->options.limit, session->options.limit_entry};
    bool several = session->place_count > 1, has_processes = session->load.snapshot->process_count > 1;
    struct replay_result result;
    struct error err = {0};
    if (replay_plan_run(plan, &recorded, &result, &err))
        return command_error(session->load.file, &err);
    session->exact &= result.exact && !result.ambiguous[0];
    if (several && emitter_is_json(session->emitter)) {
        emitter_begin_object(session->emitter, NULL, NULL);
        if (has_processes)
            emitter_count(session->emitter, "process", place->process);
        emitter_count(session->emitter, "device", place->device);
    } else if (has_processes) {
        emitter_note(session->emitter, "process %u, device %u:", place->process, place->device);
    } else if (several) {
        emitter_note(session->emitter, "device %u:", place->device);
    }
    replay_out_verified(session->emitter, &result);
    if (several && emitter_is_json(session->emitter))
        emitter_end(session->emitter);
    return EXIT_DONE;
}

/* The rows of one device; the last result for the notes. */
static int table_place(struct session *session, const struct replay_plan *plan, const struct replay_place *place,
                       struct replay_result *result)
{
    struct error err = {0};
    size_t count = 0;
    enum replay_shown shown = shown_places(session);
    const struct option_given *given = options_nth(session->line, "conf", count);
    do {
        const struct replay_trial trial = {given ? given->text : NULL, session->options.limit, session->options.limit_entry};
        if (replay_plan_run(plan, &trial, result, &err))
            return command_error(session->load.file, &err);
        replay_out_row(session->emitter, shown, place, trial.conf, result);
        given = options_nth(session->line, "conf", ++count);
    } while (given);
    return EXIT_DONE;
}

static int replay_places(struct session *session, struct replay_result *results)
{
    bool verify = options_has(session->line, "verify");
    const uint64_t said = session->options.limit;
    int status = EXIT_DONE;
    for (size_t i = 0; i < session->place_count && !status; i++) {
        struct replay_plan *plan;
        struct error err = {0};
        session->options.process = session->places[i].process;
        session->options.device = session->places[i].device;
        if (said == REPLAY_NO_LIMIT)
            session->options.limit = replay_recorded_limit(session->load.snapshot, session->places[i].process);
        if (replay_plan_new(session->load.snapshot, &session->options, &plan, &err))
            return replay_options_error(&session->load, &err);
        status = verify ? verify_place(session, plan, &session->places[i])
                        : table_place(session, plan, &session->places[i], &results[i]);
        replay_plan_free(plan);
    }
    return status;
}

static int session_out(struct session *session)
{
    struct emitter *emitter = session->emitter;
    struct replay_result results[REPLAY_PLACES];
    bool verify = options_has(session->line, "verify"), several = session->place_count > 1;
    if (!verify)
        replay_out_begin(emitter, shown_places(session));
    else if (several && emitter_is_json(emitter))
        emitter_begin_list(emitter, "devices", NULL);
    int status = replay_places(session, results);
    if (status)
        return status;
    if (!verify || (several && emitter_is_json(emitter)))
        emitter_end(emitter);
    if (verify && several && emitter_is_json(emitter))
        emitter_bool(emitter, "exact", session->exact);
    for (size_t i = 0; !verify && !emitter_is_json(emitter) && i < session->place_count; i++)
        replay_out_notes(emitter, &results[i], !options_has(session->line, "conf"));
    return EXIT_DONE;
}

/* PyTorch reads a number below 0 as the largest there is: hardly what was meant. */
static bool has_negative(const char *conf)
{
    for (const char *minus = strchr(conf, '-'); minus; minus = strchr(minus + 1, '-'))
        if (minus > conf && strchr(":,[ ", minus[-1]))
            return true;
    return false;
}

static int check_settings(const struct command_line *line)
{
    const struct option_given *given;
    struct settings settings;
    struct error err = {0};
    for (size_t i = 0; (given = options_nth(line, "conf", i)); i++) {
        settings_init(&settings);
        if (settings_parse(&settings, given->text, &err))
            return command_usage(line->command, "--conf %.80s: %s", given->text, err.message);
        if (has_negative(given->text))
            return command_usage(line->command, "--conf %.80s: PyTorch takes a number below 0 for the largest there is; for no "
                                 "bound leave the setting out", given->text);
    }
    return EXIT_DONE;
}

static int session_begin(struct session *session)
{
    const struct command_line *line = session->line;
    if (options_has(line, "verify") && options_has(line, "conf"))
        return command_usage(line->command, "--verify is about the recorded settings, without --conf");
    int status = check_settings(line);
    if (!status)
        status = replay_options_limit(line, &session->options);
    return status ? status : replay_options_pools(line, &session->options);
}

/* What can be said only when the file is read. */
static int session_check(const struct session *session)
{
    if (options_has(session->line, "verify") && session->load.moment != session->load.snapshot->entries.count)
        return command_usage(session->line->command, "--verify is about the whole recording, without @%.80s",
                             session->load.moment_text);
    return replay_options_check(session->line, &session->load, &session->options);
}

static int replay_command(struct command_line *line)
{
    struct session session = {.line = line, .exact = true};
    struct output *output = NULL;
    int status = session_begin(&session);
    if (!status)
        status = load_open(line, line->arguments[0], 0, &session.load);
    if (status)
        return status;
    session.options.moment = session.load.moment;
    session.place_count = replay_options_places(&session.load, session.places);
    if (session.place_count == REPLAY_PLACES)
        command_note("%s: no more than %d devices of processes are replayed", session.load.file, REPLAY_PLACES);
    status = session_check(&session);
    if (!status)
        status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options emitter_options = command_emitter_options(line);
        session.emitter = emitter_new(output, &emitter_options);
        if (session.emitter)
            status = session_out(&session);
        if (!status) {
            status = command_finish(session.emitter, output, session.exact ? EXIT_DONE : EXIT_NO);
        } else {
            emitter_finish(session.emitter, NULL);
            output_abandon(output);
        }
    }
    load_close(&session.load);
    return status;
}

const struct command command_replay = {
    .name = "replay",
    .summary = "a recording's requests under its own or other allocator settings",
    .arguments = "[FILE[@MOMENT]]",
    .most = 1,
    .options = replay_options,
    .run = replay_command,
};
