/*
 * Where the CUDA driver's library is, without loading it: what dlopen("libcuda.so.1") would find, and what it exports.
 *
 * driver_find() looks, as the dynamic linker does, in the folders of a library path, in the linker's cache and in its
 * default folders, and last where Windows' Linux puts it.  Only a regular ELF file for this machine counts.  It
 * allocates nothing, so that the preloaded libraries may use it as well.
 *
 * driver_exports() reads the table of dynamic symbols from the file; nothing of it is run.  Every offset is checked.
 */
#ifndef DEVICE_DRIVER_FIND_H
#define DEVICE_DRIVER_FIND_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define DRIVER_LIBRARY "libcuda.so.1"

/* The absolute path of the driver's library in path.  library_path is LD_LIBRARY_PATH's value or NULL.  0 or
 * STATUS_NOT_FOUND with the folders tried. */
int driver_find(const char *library_path, char *path, size_t path_size, struct error *err);

/* Call each(name, is_function, context) for every symbol that the file defines for others; a false answer ends it. */
int driver_exports(const char *path, bool (*each)(const char *name, bool is_function, void *context), void *context,
                   struct error *err);

/* True if the file is an ELF shared object for the machine that this program was built for. */
bool driver_file_fits(const char *path);

#endif
