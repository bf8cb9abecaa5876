/*
 * What NVIDIA's management library knows: the devices of the machine, their memory, the processes on them.  The library
 * is found at run time; where there is none, nvml_open() says so (STATUS_NOT_FOUND).  Lists belong to the caller
 * (free()).  Not thread safe.  Cost: the library's start takes milliseconds.
 */
#ifndef DEVICE_NVML_H
#define DEVICE_NVML_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml;

struct nvml_device {
    unsigned index;
    char name[96];
    char uuid[96];
    bool has_memory;
    uint64_t total, free, used; /* used: what processes and the driver hold */
};

struct nvml_process {
    unsigned device;
    uint32_t pid;
    bool graphics;   /* draws only; a process that also computes is listed once, as computing */
    bool has_used;   /* containers and some drivers do not tell */
    uint64_t used;
    char name[256];  /* "" where not known */
};

int nvml_open(struct nvml **result, struct error *err);
void nvml_close(struct nvml *nvml);

const char *nvml_driver(const struct nvml *nvml); /* the driver's version, "" where not known */
int nvml_devices(struct nvml *nvml, struct nvml_device **devices, size_t *count, struct error *err);
int nvml_processes(struct nvml *nvml, struct nvml_process **processes, size_t *count, struct error *err);

#endif
