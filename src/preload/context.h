/*
 * Contexts take memory, and take theirs with them: a context that the program made and destroys, a device's primary context that is
 * reset or whose last user left.  What lived in a context of the program's own is noted only while there is one; the rest
 * of a device's memory is its primary context's.  Memory mapped by the program, imported, or from a pool belongs to no
 * context.
 */
#ifndef PRELOAD_CONTEXT_H
#define PRELOAD_CONTEXT_H

#include "device/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

bool context_is_own(CUcontext context); /* the program made it: no primary one */

/* Note where memory was made, and that it went; called for every allocation, and cheap while no context is noted. */
void context_allocated(uint64_t address);
void context_freed(uint64_t address);

void context_after_fork(void);

#endif
