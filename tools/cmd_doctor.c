/* cudamem doctor: what would be seen and what stands in the way.  Uses render. */
#include "base/text.h"
#include "tools/command.h"
#include "tools/doctor.h"

#include <string.h>

static const struct option_spec doctor_options[] = {
    {"sim", 0, NULL, OPTION_FLAG, "as if recorded on the simulated device"},
    OPTIONS_OUTPUT,
    {"json", 0, NULL, OPTION_FLAG, "JSON: stable keys"},
    OPTIONS_END,
};

static const char *const verdict_names[] = {"ok", "note", "bad"};

static void line_out(struct emitter *emitter, const struct doctor_finding *finding)
{
    struct text text = {0};
    text_printf(&text, "%-4s  %-12s", verdict_names[finding->verdict], finding->about);
    text_add_printable(&text, finding->text, strlen(finding->text));
    if (finding->remedy)
        text_printf(&text, "; remedy: %s", finding->remedy);
    text_char(&text, '\n');
    emitter_verbatim(emitter, text_string(&text), text.length);
    text_free(&text);
}

static void findings_out(struct emitter *emitter, const struct doctor *doctor)
{
    if (emitter_is_json(emitter)) {
        emitter_bool(emitter, "recordable", !doctor->is_bad);
        emitter_begin_list(emitter, "findings", NULL);
        for (size_t i = 0; i < doctor->count; i++) {
            emitter_begin_object(emitter, NULL, NULL);
            emitter_text(emitter, "verdict", verdict_names[doctor->findings[i].verdict]);
            emitter_text(emitter, "about", doctor->findings[i].about);
            emitter_text(emitter, "text", doctor->findings[i].text);
            emitter_text(emitter, "remedy", doctor->findings[i].remedy);
            emitter_end(emitter);
        }
        emitter_end(emitter);
        return;
    }
    for (size_t i = 0; i < doctor->count; i++)
        line_out(emitter, &doctor->findings[i]);
}

static int doctor_run(struct command_line *line)
{
    struct doctor doctor = {0};
    struct output *output;
    struct error err = {0};
    doctor_machine(&doctor, options_has(line, "sim"));
    doctor_environment(&doctor);
    if (line->argument_count)
        doctor_program(&doctor, line->arguments[0]);
    if (doctor.no_memory) {
        doctor_free(&doctor);
        error_no_memory(&err);
        return command_error(NULL, &err);
    }
    int status = command_open_output(line, CONTENT_TEXT, NULL, &output);
    if (!status) {
        struct emitter_options options = {.json = options_has(line, "json")};
        struct emitter *emitter = emitter_new(output, &options);
        if (emitter)
            findings_out(emitter, &doctor);
        status = command_finish(emitter, output, doctor.is_bad ? EXIT_NO : EXIT_DONE);
    }
    doctor_free(&doctor);
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "what a recording would see, what stands in the way, and the remedy",
    .arguments = "[PROGRAM [ARG...]]",
    .most = ARGUMENTS_ANY,
    .program_follows = true,
    .options = doctor_options,
    .run = doctor_run,
};
