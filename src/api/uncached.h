/*
 * Memory while caching is switched off: each block is the driver's own.  Locks for itself, below nothing.
 */
#ifndef API_UNCACHED_H
#define API_UNCACHED_H

#include "api/library.h"

int uncached_alloc(struct library_device *device, uint64_t size, int64_t stream, uint64_t *address, struct error *err);
bool uncached_owns(uint64_t address); /* without a lock while there is no such memory */
int uncached_free(uint64_t address, struct error *err);

#endif
