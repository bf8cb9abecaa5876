/* Lengths of time.  Uses the C library alone. */
#include "base/duration.h"

#include <stddef.h>
#include <string.h>

#define LONGEST (INT64_C(365) * 24 * 3600 * 1000)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool duration_parse(const char *text, int64_t *milliseconds)
{
    static const struct {
        const char *unit;
        int64_t milliseconds;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {"d", 24 * 3600 * 1000}};
    int64_t whole = 0, part = 0, scale = 1;
    if (!is_digit(*text))
        return false;
    for (; is_digit(*text); text++)
        if ((whole = whole * 10 + (*text - '0')) > LONGEST)
            return false;
    if (*text == '.') {
        if (!is_digit(*++text))
            return false;
        for (; is_digit(*text); text++)
            if (scale < 1000000) {
                part = part * 10 + (*text - '0');
                scale *= 10;
            }
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].unit) != 0)
            continue;
        if (whole > LONGEST / units[i].milliseconds)
            return false;
        *milliseconds = whole * units[i].milliseconds + part * units[i].milliseconds / scale;
        return *milliseconds > 0;
    }
    return false;
}
