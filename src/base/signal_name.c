/* Names of signals.  Uses the C library alone. */
#include "base/signal_name.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define FIRST_KEPT 32 /* from here to SIGRTMIN the C library keeps signals for itself */

/* One or two digits to the end; -1 if there is anything else. */
static int small_number(const char *text)
{
    int number = 0;
    size_t length = strlen(text);
    if (length < 1 || length > 2)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (*text - '0');
    }
    return number;
}

static int real_time_number(const char *name)
{
    bool from_least = strncasecmp(name, "RTMIN", 5) == 0;
    if (!from_least && strncasecmp(name, "RTMAX", 5) != 0)
        return 0;
    int offset = 0;
    if (name[5]) {
        offset = name[5] == (from_least ? '+' : '-') ? small_number(name + 6) : -1;
        if (offset < 0)
            return 0;
    }
    int number = from_least ? SIGRTMIN + offset : SIGRTMAX - offset;
    return number >= SIGRTMIN && number <= SIGRTMAX ? number : 0;
}

int signal_number(const char *name)
{
    int number = small_number(name);
    if (number >= 0)
        return number >= 1 && number < NSIG && (number < FIRST_KEPT || number >= SIGRTMIN) ? number : 0;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (number = 1; number < NSIG; number++) {
        const char *known = sigabbrev_np(number);
        if (known && strcasecmp(known, name) == 0)
            return number;
    }
    return real_time_number(name);
}
