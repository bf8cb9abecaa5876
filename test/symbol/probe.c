/* A library whose functions are known, for the test of symbols: each calls back, and the callback sees where from. */
#include "probe.h"

#define EXPORT __attribute__((visibility("default"), noinline))

static volatile int probe_sink;

#define INNER_LINE 13
#define OUTER_LINE 20

static inline __attribute__((always_inline)) void probe_inner(probe_callback *call, void *context)
{
    call(context); /* INNER_LINE */
    probe_sink++;
}

EXPORT void probe_outer(probe_callback *call, void *context)
{
    probe_sink++;
    probe_inner(call, context); /* OUTER_LINE */
    probe_sink++;
}

EXPORT void probe_plain(probe_callback *call, void *context)
{
    call(context);
    probe_sink++;
}

/* What a C++ compiler would call it. */
EXPORT void probe_mangled(probe_callback *call, void *context) __asm__("_ZN5probe7mangledERKNS_4ItemIiEE");
void probe_mangled(probe_callback *call, void *context)
{
    call(context);
    probe_sink++;
}

__attribute__((visibility("default"))) extern const struct probe_lines probe_lines;
const struct probe_lines probe_lines = {INNER_LINE, OUTER_LINE};
