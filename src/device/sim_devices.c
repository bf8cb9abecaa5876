/* The list of simulated devices.  Uses base and the C library. */
#include "device/sim_devices.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

#define SIM_USUAL "16GiB"

static int add_devices(struct sim_devices *devices, unsigned long count, const char *size, const char *text,
                       struct error *err)
{
    uint64_t bytes;
    int status = size_parse(size, &bytes, err);
    if (status)
        return error_set(err, STATUS_USAGE, "simulated device: '%s' in '%s' is no size; write N, SIZE or N:SIZE, as in "
                         "2:16GiB", size, text);
    if (bytes < SIM_DEVICES_PAGE || bytes > SIM_DEVICES_LARGEST)
        return error_set(err, STATUS_USAGE, "simulated device: size %s in '%s' is not between 2 MiB and 512 GiB", size,
                         text);
    if (count > SIM_DEVICES_MAX - devices->count)
        return error_set(err, STATUS_USAGE, "simulated device: more than %d devices in '%s'", SIM_DEVICES_MAX, text);
    for (unsigned long i = 0; i < count; i++)
        devices->bytes[devices->count++] = bytes / SIM_DEVICES_PAGE * SIM_DEVICES_PAGE;
    return STATUS_OK;
}

/* A number of devices; what is too much for that and has no colon is a size in bytes. */
static bool count_of(const char *part, unsigned long *count)
{
    size_t digits = strspn(part, "0123456789");
    if (digits == 0 || digits > 6 || part[digits])
        return false;
    *count = strtoul(part, NULL, 10);
    return true;
}

int sim_devices_parse(const char *text, struct sim_devices *devices, struct error *err)
{
    char copy[256];
    if (!text)
        text = SIM_USUAL;
    devices->count = 0;
    if (strlen(text) >= sizeof copy)
        return error_set(err, STATUS_USAGE, "simulated device: the list of devices is too long");
    strcpy(copy, text);
    char *rest = copy, *part;
    while ((part = strsep(&rest, ","))) {
        unsigned long count = 1;
        const char *size = part;
        char *colon = strchr(part, ':');
        if (colon) {
            *colon = '\0';
            size = colon + 1;
        }
        if (count_of(part, &count))
            size = colon ? size : SIM_USUAL;
        else if (colon)
            return error_set(err, STATUS_USAGE, "simulated device: '%s' in '%s' is not a number of devices (0 to %d); "
                             "write N:SIZE", part, text, SIM_DEVICES_MAX);
        int status = add_devices(devices, count, size, text, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}
