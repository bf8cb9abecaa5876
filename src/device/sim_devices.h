/*
 * The list of simulated devices, as CUDAMEM_SIM and `cudamem record --sim=` give it: "2:16GiB" (two of 16 GiB), "2" (two
 * of the usual size), "8GiB", and several of these with commas.  One grammar for who checks it and for who acts on it.
 */
#ifndef DEVICE_SIM_DEVICES_H
#define DEVICE_SIM_DEVICES_H

#include "base/error.h"

#include <stdint.h>

#define SIM_DEVICES_MAX 16
#define SIM_DEVICES_PAGE (2ull << 20)       /* sizes are multiples of it */
#define SIM_DEVICES_LARGEST (512ull << 30)  /* of one device */

struct sim_devices {
    unsigned count;
    uint64_t bytes[SIM_DEVICES_MAX];
};

/* NULL: one of the usual size. */
int sim_devices_parse(const char *text, struct sim_devices *devices, struct error *err);

#endif
