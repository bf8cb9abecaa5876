/*
 * The dynamic linker as it is without us: the next dlsym (whoever interposed it behind us, else the C library's), the C
 * library's own, and which loaded objects are ours or a driver's.
 *
 * linker_start() costs a few lookups, once; the first dlsym of the process calls it, or the constructor.  The other
 * functions use the linker and belong where the program itself uses it, never into the recording of an event.
 */
#ifndef PRELOAD_LINKER_H
#define PRELOAD_LINKER_H

#include <stdbool.h>
#include <stddef.h>

#define LINKER_FORWARDER "libcudamem-libcuda.so" /* file name of the object that forwards the driver's exports */

void linker_start(void);

/* The next dlclose. */
int linker_close(void *handle);

/* The C library's dlsym, asked by this library. */
void *linker_symbol(void *handle, const char *name);

enum linker_object { LINKER_OTHER, LINKER_OURS, LINKER_FORWARD, LINKER_DRIVER };

/* What an address lies in; its handle for linker_symbol() and its path (handle and path may be NULL). */
enum linker_object linker_object_of(const void *address, void **handle, const char **path);

/* The handle of the forwarding object if it was preloaded, else NULL. */
void *linker_forwarder(void);

/* True if a driver's library (not our forwarding object) is loaded. */
bool linker_driver_mapped(void);

/* True if something loaded was linked with the driver: it would be loaded already without us. */
bool linker_driver_needed(void);

/* The first definition of a function in the objects loaded after this library, whatever their scope; NULL: there is
 * none.  Takes no lock that a dlopen holds while constructors run, unlike dlsym. */
void *linker_next_definition(const char *name);

#endif
