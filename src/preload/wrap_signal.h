/*
 * The program's calls that set what a signal does: those of the signal that asks for a snapshot go to the recorder, all
 * others on to the next definition, as if we were not there.
 */
#ifndef PRELOAD_WRAP_SIGNAL_H
#define PRELOAD_WRAP_SIGNAL_H

#include "record/record.h"

/* Finds the next definitions; the constructor calls it. */
void wrap_signal_start(void);

/* The next sigaction. */
record_sigaction *wrap_signal_next(void);

#endif
