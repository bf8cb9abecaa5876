/* Results of replays on an emitter: a table (or list) of rows, then notes; or what a verification found. */
#ifndef TOOLS_REPLAY_OUT_H
#define TOOLS_REPLAY_OUT_H

#include "analyze/replay.h"
#include "render/emitter.h"
#include "tools/replay_options.h"

#include <stdbool.h>

/* What rows begin with. */
enum replay_shown { REPLAY_SHOWS_NO_PLACE, REPLAY_SHOWS_DEVICE, REPLAY_SHOWS_PROCESS /* and device */ };
void replay_out_begin(struct emitter *emitter, enum replay_shown shown);

/* conf NULL: the recorded settings. */
void replay_out_row(struct emitter *emitter, enum replay_shown shown, const struct replay_place *place, const char *conf,
                    const struct replay_result *result);

/* What is to be known besides the numbers; recorded: the difference under the recorded settings, too. */
void replay_out_notes(struct emitter *emitter, const struct replay_result *result, bool recorded);

/* The same as keys of a JSON object. */
void replay_out_facts(struct emitter *emitter, const struct replay_result *result, bool recorded);

/* A count of retries, marked where it is a lower bound: the limit is not told, and something was refused. */
void replay_out_retries(struct emitter *emitter, const char *key, const struct replay_result *result);

/* JSON: which of a row's numbers are lower bounds; has_stats: those of memory_stats() stand in it, too. */
void replay_out_at_least(struct emitter *emitter, const struct replay_result *result, bool has_stats);

/* "" or "s" behind a count. */
const char *replay_out_plural(uint64_t count);
void replay_out_verified(struct emitter *emitter, const struct replay_result *result);

#endif
