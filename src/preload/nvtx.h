/* NVTX: in a forked child no other thread will give its lock back. */
#ifndef PRELOAD_NVTX_H
#define PRELOAD_NVTX_H

void nvtx_after_fork(void);

#endif
