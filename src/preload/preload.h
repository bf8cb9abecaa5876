/*
 * The injected library's life: settings from the environment, start, end, forks, the few lines it may print.
 *
 * preload_start() is called by the constructor and by the first wrapper, whichever comes first (constructors of the
 * program's libraries run before ours).  CUDAMEM_DISABLE=1 leaves every hook a pass-through: no recorder, no file.
 */
#ifndef PRELOAD_PRELOAD_H
#define PRELOAD_PRELOAD_H

#include <stdbool.h>

void preload_start(void);

/* False with CUDAMEM_DISABLE=1, and where the recorder could not start: nothing is swapped, nothing recorded. */
bool preload_enabled(void);

/* False too in children under CUDAMEM_FOLLOW=0: wrappers pass through. */
bool preload_recording(void);

/* The same where nothing may be started: what has not begun is not recording. */
bool preload_is_recording(void);

bool preload_records_host(void);

/* Some wrapper ran: the program does reach the driver through us. */
void preload_saw_call(void);

/* An event was given to the recorder, which kept it or could not. */
void preload_recorded(bool kept);

/* Files that a process leaves in the ring folder, WORD.PID, for the command to read: */
#define PRELOAD_MARK_UNSEEN "unseen" /* a driver is mapped and no call of it came by us */
#define PRELOAD_MARK_FAILED "failed" /* there were events and no file could be made */

/* A line on stderr under CUDAMEM_DEBUG. */
void preload_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
