/*
 * Findings of `cudamem doctor`: what would be seen of a program and what stands in the way, each with its remedy.
 * Nothing is run.  The list belongs to the caller: doctor_free().
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum doctor_verdict {
    DOCTOR_OK,
    DOCTOR_NOTE, /* recording works, but less will be seen than could be */
    DOCTOR_BAD,  /* nothing would be recorded, or the program would not start */
};

struct doctor_finding {
    enum doctor_verdict verdict;
    const char *about;   /* "driver", "space", ... */
    char *text, *remedy; /* remedy NULL: nothing to do */
};

struct doctor {
    struct doctor_finding *findings;
    size_t count, capacity;
    bool is_bad, no_memory;
};

/* remedy NULL: none.  The text follows printf. */
void doctor_say(struct doctor *doctor, enum doctor_verdict verdict, const char *about, const char *remedy,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
void doctor_free(struct doctor *doctor);

/* This machine and this environment; is_sim: on the simulated device. */
void doctor_machine(struct doctor *doctor, bool is_sim);
void doctor_environment(struct doctor *doctor);

/* A program, as execvp takes it. */
void doctor_program(struct doctor *doctor, const char *program);

#endif
