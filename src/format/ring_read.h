/*
 * Reading the ring file that a recorded process leaves behind, or still writes.
 *
 * A live file is read as it was at one moment; a file whose process was killed as it was then.  The file must be
 * regular and belong to the user or to root; it is read by pread, so one that shrinks meanwhile is a short read.  Every
 * offset, count and number in it is checked.  The caller owns the snapshot.
 */
#ifndef FORMAT_RING_READ_H
#define FORMAT_RING_READ_H

#include "base/error.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool ring_is_ring(const unsigned char *start, size_t length);

int ring_read(const char *path, struct snapshot **result, struct error *err);

/* The same without entries: what lives and the devices' numbers, for those who look again and again. */
int ring_read_living(const char *path, struct snapshot **result, struct error *err);

/* What the header alone says, for lists of ring files. */
struct ring_facts {
    int64_t pid, parent, rank;
    int64_t start_time, end_time; /* microseconds since the epoch; end_time 0: did not end normally, or runs */
    uint64_t events;
    bool finished, paused;
    char program[512], output[512], boot_id[64];
};
int ring_read_facts(const char *path, struct ring_facts *facts, struct error *err);

#endif
