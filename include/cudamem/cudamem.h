/*
 * cudamem/cudamem.h: everything the library offers.
 */
#ifndef CUDAMEM_CUDAMEM_H
#define CUDAMEM_CUDAMEM_H

#include <cudamem/error.h>
#include <cudamem/snapshot.h>
#include <cudamem/version.h>

#endif
