/*
 * A value of a snapshot (a setting, an unknown key) through the emitter: strings, numbers, lists, dicts.
 * Depth and number of items are bounded, because files may nest values in one another without end.
 */
#ifndef RENDER_VALUE_OUT_H
#define RENDER_VALUE_OUT_H

#include "render/emitter.h"
#include "snapshot/snapshot.h"

void value_out(struct emitter *emitter, const struct snapshot *snapshot, const char *key, value content);

#endif
