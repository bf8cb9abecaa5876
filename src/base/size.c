/* Sizes as text; uses only the C library. */
#include "base/size.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const size_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

const char *size_format(uint64_t bytes, char buffer[SIZE_TEXT])
{
    if (bytes < 1024) {
        snprintf(buffer, SIZE_TEXT, "%" PRIu64 " B", bytes);
        return buffer;
    }
    unsigned unit = 0;
    double value = (double)bytes;
    while (value >= 1024 && unit < 6) {
        value /= 1024;
        unit++;
    }
    if (value >= 1023.995 && unit < 6) { /* would print as 1024.00 */
        value /= 1024;
        unit++;
    }
    snprintf(buffer, SIZE_TEXT, "%.2f %s", value, size_units[unit]);
    return buffer;
}

const char *size_format_delta(uint64_t before, uint64_t after, char buffer[SIZE_TEXT])
{
    char text[SIZE_TEXT];
    size_format(after >= before ? after - before : before - after, text);
    snprintf(buffer, SIZE_TEXT, "%c%.30s", after >= before ? '+' : '-', text);
    return buffer;
}

/* The exponent of 1024 that the unit stands for, -1 if it is none. */
static int size_unit(const char *unit)
{
    static const char letters[] = "kmgtpe";
    if (!*unit || strcasecmp(unit, "b") == 0)
        return 0;
    const char *at = strchr(letters, tolower((unsigned char)unit[0]));
    if (!at || !*at)
        return -1;
    if (unit[1] && strcasecmp(unit + 1, "ib") != 0 && strcasecmp(unit + 1, "i") != 0 && strcasecmp(unit + 1, "b") != 0)
        return -1;
    return (int)(at - letters) + 1;
}

int size_parse(const char *text, uint64_t *bytes, struct error *err)
{
    const char *at = text;
    uint64_t whole = 0, fraction = 0, scale = 1;
    if (!isdigit((unsigned char)*at))
        return error_set(err, STATUS_USAGE, "'%s' is no size; write 512, 64KiB, 20M or 1.5GiB", text);
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(whole, 10u, &whole) || __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
            return error_set(err, STATUS_USAGE, "'%s' is too large a size", text);
    if (*at == '.')
        for (at++; isdigit((unsigned char)*at); at++)
            if (scale < 1000000000u) {
                fraction = fraction * 10 + (uint64_t)(*at - '0');
                scale *= 10;
            }
    while (*at == ' ')
        at++;
    int unit = size_unit(at);
    if (unit < 0)
        return error_set(err, STATUS_USAGE, "'%s' is no size: unknown unit '%s'; write 512, 64KiB, 20M or 1.5GiB", text,
                         at);
    uint64_t factor = UINT64_C(1) << (10 * unit);
    uint64_t part = (uint64_t)((unsigned __int128)fraction * factor / scale);
    if (__builtin_mul_overflow(whole, factor, bytes) || __builtin_add_overflow(*bytes, part, bytes))
        return error_set(err, STATUS_USAGE, "'%s' is too large a size", text);
    return STATUS_OK;
}

int size_parse_range(const char *text, uint64_t *low, uint64_t *high, struct error *err)
{
    const char *dots = strstr(text, "..");
    if (!dots) {
        int status = size_parse(text, low, err);
        *high = *low;
        return status;
    }
    char first[64];
    size_t length = (size_t)(dots - text);
    if (length >= sizeof(first))
        return error_set(err, STATUS_USAGE, "'%s' is no range of sizes", text);
    memcpy(first, text, length);
    first[length] = '\0';
    *low = 0;
    *high = UINT64_MAX;
    if (length && size_parse(first, low, err))
        return STATUS_USAGE;
    if (dots[2] && size_parse(dots + 2, high, err))
        return STATUS_USAGE;
    if (*low > *high)
        return error_set(err, STATUS_USAGE, "'%s': the lower end is above the upper one", text);
    return STATUS_OK;
}
