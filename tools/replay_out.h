/* Results of replays on an emitter: a table (or list) of rows, then notes; or what a verification found. */
#ifndef TOOLS_REPLAY_OUT_H
#define TOOLS_REPLAY_OUT_H

#include "analyze/replay.h"
#include "render/emitter.h"
#include "tools/replay_options.h"

#include <stdbool.h>

/* several: rows of more than one device, told by a first column. */
void replay_out_begin(struct emitter *emitter, bool several);

/* place NULL: not told.  conf NULL: the recorded settings. */
void replay_out_row(struct emitter *emitter, const struct replay_place *place, const char *conf,
                    const struct replay_result *result);
void replay_out_notes(struct emitter *emitter, const struct replay_result *result, bool recorded);
void replay_out_verified(struct emitter *emitter, const struct replay_result *result);

#endif
