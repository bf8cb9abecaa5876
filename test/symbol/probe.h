/* The library that test_symbolize.c looks symbols up in. */
#ifndef TEST_PROBE_H
#define TEST_PROBE_H

typedef void probe_callback(void *context);

void probe_outer(probe_callback *call, void *context);
void probe_plain(probe_callback *call, void *context);

struct probe_lines {
    int inner, outer; /* of the calls in probe.c */
};

#endif
