/*
 * Signals by the names that kill(1) has for them: USR2, SIGUSR2, RTMIN+3, RTMAX-1, 12.
 */
#ifndef BASE_SIGNAL_NAME_H
#define BASE_SIGNAL_NAME_H

/* The number, or 0: no such signal. */
int signal_number(const char *name);

#endif
