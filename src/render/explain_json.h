/* An explanation as JSON: every finding under a stable key (cudamem-explain(1)), bytes as integers. */
#ifndef RENDER_EXPLAIN_JSON_H
#define RENDER_EXPLAIN_JSON_H

#include "analyze/explain.h"
#include "base/error.h"
#include "render/emitter.h"

/* rows: of each list at most. */
int explain_json(struct emitter *emitter, const struct explain *explain, size_t rows, struct error *err);

#endif
