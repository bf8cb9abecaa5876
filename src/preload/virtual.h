/*
 * Virtual memory: physical memory is made (cuMemCreate), mapped and unmapped, and lives until its handle was released
 * and it is mapped nowhere.  It is counted where it is mapped, once, however often it is mapped; while it is mapped
 * nowhere it counts at an address of nothing, without an entry: most is mapped at once.  Reserving addresses counts
 * nothing.
 */
#ifndef PRELOAD_VIRTUAL_H
#define PRELOAD_VIRTUAL_H

/* In a forked child: no other thread will give the lock back. */
void virtual_after_fork(void);

#endif
