/* What a recording does not tell, and the user can: the limit, and what its pools were like. */
#ifndef TOOLS_REPLAY_OPTIONS_H
#define TOOLS_REPLAY_OPTIONS_H

#include "analyze/replay.h"
#include "tools/command.h"
#include "tools/load.h"

#define OPTIONS_LIMIT {"memory-limit", 0, "SIZE[@ENTRY]", OPTION_TEXT, "the limit that the allocator had, from this entry on"}

/* Fills limit and limit_entry of *options.  0, or an exit status after a line on stderr. */
int replay_options_limit(const struct command_line *line, struct replay_options *options);

/* What these options say of entries, once the file is read: 0, or an exit status after a line if there are none such. */
int replay_options_check(const struct command_line *line, const struct load *load, const struct replay_options *options);

/* Lines on stderr for devices whose recording does not come out under --memory-limit. */
void replay_options_tell_refuted(const struct command_line *line, const struct load *load, const struct statistics_list *list);

/* A line for a plan that could not be made, unless load_open() told the reason: nothing is there of the selected device.
 * Returns the exit status. */
int replay_options_error(const struct load *load, const struct error *err);

/* Of private pools; for commands that select nothing by --pool. */
#define OPTIONS_POOLS                                                                                            \
    {"pool", 0, "A:B=HOW", OPTION_TEXT, "the pool was made with no_split, use_on_oom or split; may be repeated"}, \
    {"scope", 0, "A:B=FROM..TO", OPTION_TEXT, "requests of these entries went to the pool; may be repeated"}

/* Fills pools and scopes of *options, which live as long as the process.  0, or an exit status after a line. */
int replay_options_pools(const struct command_line *line, struct replay_options *options);

/* The device to look at, the selected one or that of the first entry, and the moment: into *options. */
void replay_options_device(const struct load *load, struct replay_options *options);

/* Devices of processes that have entries, in order of their first; only the selected one if one is selected.  At least one:
 * that of the first entry, or device 0. */
#define REPLAY_PLACES 64
struct replay_place {
    uint16_t process, device;
};
size_t replay_options_places(const struct load *load, struct replay_place places[REPLAY_PLACES]);

/* Why a result is approximate, in words; and what a row without settings of its own is called: where nothing of an
 * allocator was recorded these are the default ones. */
const char *replay_options_approximate(const struct replay_result *result);
const char *replay_options_own_name(const struct replay_result *result);

#endif
