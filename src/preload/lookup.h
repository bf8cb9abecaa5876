/*
 * What a program gets when it asks for a driver function.  The rest of this file's work is called by assembly.
 */
#ifndef PRELOAD_LOOKUP_H
#define PRELOAD_LOOKUP_H

/* Under CUDAMEM_DEBUG: how many requests there were. */
void lookup_report(void);

#endif
