/*
 * Memory that a device has reserved for graphs.  Nodes of graphs that allocate have addresses, but the memory behind
 * them is shared among graphs, comes when one is made ready or launched, and stays reserved until it is trimmed; so what
 * is recorded is how much the device reserves, as it grows and shrinks: pieces of kind RECORD_GRAPH, without addresses of
 * the device.  Nothing is asked while no graph has memory.
 */
#ifndef PRELOAD_GRAPH_MEMORY_H
#define PRELOAD_GRAPH_MEMORY_H

#include "preload/hook.h"

/* A node that allocates was made: on a device, or in a capture. */
void graph_memory_on(int device);
void graph_memory_captured(void);

/* Ask the driver, and record what changed; not in captures. */
void graph_memory_measure(struct hook *hook);

/* Is this launch one that is worth asking after?  The first ones of each, then fewer and fewer, all anew after a trim. */
bool graph_memory_launched(CUgraphExec exec);
void graph_memory_trimmed(void);
void graph_memory_forget(CUgraphExec exec);

void graph_memory_device_is_gone(struct hook *hook, unsigned device); /* with its primary context */
void graph_memory_after_fork(void);

#endif
