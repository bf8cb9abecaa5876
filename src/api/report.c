/* Errors and size-tagged structs on their way to the caller.  Uses src/base. */
#include "api/report.h"

#include <string.h>

int api_give(void *theirs, const void *ours, size_t known)
{
    size_t size;
    memcpy(&size, theirs, sizeof(size));
    if (size < sizeof(size_t) * 2)
        return CUDAMEM_ERROR_USAGE;
    size_t part = size < known ? size : known;
    memcpy((char *)theirs + sizeof(size), (const char *)ours + sizeof(size), part - sizeof(size));
    return CUDAMEM_OK;
}

void api_take(void *ours, size_t known, const void *theirs)
{
    size_t size = 0;
    memset(ours, 0, known);
    if (!theirs)
        return;
    memcpy(&size, theirs, sizeof(size));
    memcpy(ours, theirs, size < known ? size : known);
}

int api_report(cudamem_error *error, const struct error *err, int status)
{
    if (!error)
        return status;
    cudamem_error full = {.status = status, .has_offset = err->has_offset, .offset = err->offset};
    _Static_assert(sizeof(full.message) >= sizeof(err->message), "messages fit");
    memcpy(full.message, err->message, sizeof(err->message));
    api_give(error, &full, sizeof(full));
    return status;
}
