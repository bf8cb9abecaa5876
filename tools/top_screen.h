/*
 * A terminal that is drawn again and again: its other screen, keys without the return key, and all as it was before
 * when it is left, also by a signal.  One a process.
 */
#ifndef TOOLS_TOP_SCREEN_H
#define TOOLS_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

void screen_enter(void);

/* What was there before is there again.  Dies of the signal that ended the watching, if one did. */
void screen_leave(void);

unsigned screen_width(void);

/* Draw the text from the top, no more lines than there are. */
void screen_draw(const char *text, size_t length);

/* Wait; false when the user wants to leave (q, or a signal).  A new size of the terminal ends the wait early. */
bool screen_wait(unsigned seconds);

#endif
