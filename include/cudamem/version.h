/*
 * cudamem/version.h: which cudamem this is.
 */
#ifndef CUDAMEM_VERSION_H
#define CUDAMEM_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

#define CUDAMEM_VERSION_MAJOR 0
#define CUDAMEM_VERSION_MINOR 1
#define CUDAMEM_VERSION_PATCH 0

/* The version of the library that is loaded, "MAJOR.MINOR.PATCH".  Static storage; thread safe. */
const char *cudamem_version(void);

#ifdef __cplusplus
}
#endif
#endif
