/*
 * What the public functions answer with: errors and size-tagged structs, on their way to and from the caller.
 */
#ifndef API_REPORT_H
#define API_REPORT_H

#include "base/error.h"

#include <cudamem/error.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Fill the caller's error, if there is one, with ours; returns status. */
int api_report(cudamem_error *error, const struct error *err, int status);
/* Copy as much of ours as the caller's size-tagged struct holds; it keeps its own size.  CUDAMEM_ERROR_USAGE: no size. */
int api_give(void *theirs, const void *ours, size_t known);
/* A zeroed struct of ours from the caller's size-tagged one (NULL: all zero). */
void api_take(void *ours, size_t known, const void *theirs);

#endif
