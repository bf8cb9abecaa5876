/*
 * A snapshot as the caller holds it: read from a file, or taken of this process, whose native frames get their names when
 * somebody asks for them.
 */
#ifndef API_SNAPSHOT_OBJECT_H
#define API_SNAPSHOT_OBJECT_H

#include "snapshot/snapshot.h"

#include <cudamem/snapshot.h>
#include <pthread.h>
#include <stdatomic.h>

struct cudamem_snapshot {
    struct snapshot *snapshot;
    atomic_bool lacks_names;
    pthread_mutex_t naming;
};

/* Takes the snapshot over; on failure (no memory) it is freed. */
int snapshot_object_new(struct snapshot *inner, bool lacks_names, cudamem_snapshot **snapshot, struct error *err);

/* Its content with names.  Any number of threads may ask. */
int snapshot_object_names(const cudamem_snapshot *snapshot, struct error *err);

/* Everything there is, or what the options choose. */
struct cudamem_memory_snapshot_options;
int snapshot_take(const struct cudamem_memory_snapshot_options *options, cudamem_snapshot **snapshot, struct error *err);

#endif
