/*
 * cudamem/cudamem.h: everything the library offers.
 */
#ifndef CUDAMEM_CUDAMEM_H
#define CUDAMEM_CUDAMEM_H

#include <cudamem/allocator.h>
#include <cudamem/device.h>
#include <cudamem/error.h>
#include <cudamem/history.h>
#include <cudamem/host.h>
#include <cudamem/pluggable.h>
#include <cudamem/pool.h>
#include <cudamem/snapshot.h>
#include <cudamem/stats.h>
#include <cudamem/suballoc.h>
#include <cudamem/svg.h>
#include <cudamem/torch.h>
#include <cudamem/version.h>

#endif
