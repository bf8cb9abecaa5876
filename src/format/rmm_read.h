/*
 * Reading the log that RMM's logging_resource_adaptor writes (rmm_row.h says what stands in a line).
 *
 * Nothing caches as far as the log tells (process.implied_blocks): a row `allocate` is a segment_alloc entry, `free` a
 * segment_free, `allocate failure` an oom; entries are in file order, one a row, except that rows about the null
 * pointer and no bytes leave none.  Times are those of the first day of the epoch, where the log tells the time of day
 * only; they never go backwards: past midnight they go on with the next day.  Threads with numbers of more than 32 bits
 * get 1, 2, 3, ... instead.
 *
 * A free of an address that nothing holds (a log that began late), an allocation where one is held already and a last
 * line that stops in the middle of a row (a killed process) make process.incomplete true, and sums lower bounds.  An
 * allocation that would not lie in the address space is ENTRY_BAD.  A row that cannot be read is an error that names
 * its line.  Memory: entries, and what lives.
 */
#ifndef FORMAT_RMM_READ_H
#define FORMAT_RMM_READ_H

#include "base/error.h"
#include "base/input.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does it start with a log's header? */
bool rmm_is_log(const unsigned char *start, size_t length);

/* The device that RMM puts into the names of its logs, one a device: x.csv.dev1, x.dev1.csv, x.csv.dev1.gz.  0 if there
 * is none in the last part of path (NULL: no name), UINT16_MAX if the number is none of a device. */
uint16_t rmm_device_of_name(const char *path);

/* The caller owns the snapshot.  Device UINT16_MAX: an error that asks for another name. */
int rmm_read(struct input *input, uint16_t device, struct snapshot **result, struct error *err);

#endif
