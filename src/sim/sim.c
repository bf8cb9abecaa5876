/*
 * The simulated device: making one, its configuration, and faults on demand.
 * May use: device (placement), base.
 */
#include "sim/sim_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/size.h"

/* Each device has its own part of the address space, far from where a process has its own memory. */
#define SIM_ADDRESS_BASE 0x100000000000ull
#define SIM_ADDRESS_STEP 0x010000000000ull

bool sim_grow(void **array, size_t *room, size_t need, size_t size)
{
    if (need <= *room)
        return true;
    size_t wanted = *room ? *room * 2 : 16;
    while (wanted < need)
        wanted *= 2;
    void *larger = realloc(*array, wanted * size);
    if (!larger)
        return false;
    *array = larger;
    *room = wanted;
    return true;
}

int sim_config_devices(struct sim_config *config, const char *text, struct error *err)
{
    struct sim_devices devices;
    int status = sim_devices_parse(text, &devices, err);
    if (status)
        return status;
    config->devices = devices.count;
    memcpy(config->bytes, devices.bytes, sizeof config->bytes);
    return STATUS_OK;
}

struct sim *sim_new(const struct sim_config *config)
{
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return NULL;
    sim->config = *config;
    sim->next_id = 1;
    sim->next_handle = 1;
    pthread_mutex_init(&sim->lock, NULL);
    pthread_cond_init(&sim->moved, NULL);
    sim->devices = calloc(config->devices ? config->devices : 1, sizeof *sim->devices);
    bool ok = sim->devices != NULL;
    for (unsigned i = 0; ok && i < config->devices; i++) {
        sim->devices[i].bytes = config->bytes[i];
        sim->devices[i].placement = placement_new(SIM_ADDRESS_BASE + (i + 1) * SIM_ADDRESS_STEP);
        ok = sim->devices[i].placement != NULL;
    }
    if (ok)
        return sim;
    sim_free(sim);
    return NULL;
}

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    sim_streams_free(sim);
    sim_pools_free(sim);
    while (sim->entry_count)
        sim_entry_remove(sim, &sim->entries[sim->entry_count - 1]);
    for (size_t i = 0; i < sim->physical_count; i++)
        if (sim->physicals[i].data)
            munmap(sim->physicals[i].data, sim->physicals[i].bytes);
    for (unsigned i = 0; sim->devices && i < sim->config.devices; i++) {
        struct device *d = &sim->devices[i];
        for (size_t k = 0; k < d->slab_count; k++)
            free(d->slabs[k]);
        free(d->slabs);
        placement_free(d->placement);
    }
    free(sim->devices);
    free(sim->entries);
    free(sim->reservations);
    free(sim->physicals);
    free(sim->faults);
    pthread_cond_destroy(&sim->moved);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

const struct sim_config *sim_settings(const struct sim *sim)
{
    return &sim->config;
}

void sim_hold(struct sim *sim, bool hold)
{
    if (hold)
        pthread_mutex_lock(&sim->lock);
    else
        pthread_mutex_unlock(&sim->lock);
}

/* Faults. */

static int fault_parse(struct fault *fault, char *part, struct error *err)
{
    char *colon = strchr(part, ':'), *equals = colon ? strchr(colon, '=') : NULL, *end;
    if (!equals || colon == part || (size_t)(colon - part) >= sizeof fault->name)
        return error_set(err, STATUS_USAGE, "simulated fault \"%s\" is not NAME:N=CODE", part);
    memset(fault, 0, sizeof *fault);
    memcpy(fault->name, part, (size_t)(colon - part));
    fault->at = strtoull(colon + 1, &end, 10);
    fault->later = *end == '+';
    if (fault->at == 0 || end + fault->later != equals)
        return error_set(err, STATUS_USAGE, "simulated fault \"%s\": which call (1, 2, 3+ ...)?", part);
    if (strcmp(equals + 1, "oom") == 0) {
        fault->code = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (strcmp(equals + 1, "lost") == 0) {
        fault->code = CUDA_ERROR_UNKNOWN;
        fault->lost = true;
    } else {
        unsigned long code = strtoul(equals + 1, &end, 10);
        if (end == equals + 1 || *end || code > CUDA_ERROR_UNKNOWN)
            return error_set(err, STATUS_USAGE, "simulated fault \"%s\": the code is a number, oom or lost", part);
        fault->code = (CUresult)code;
    }
    return STATUS_OK;
}

int sim_faults(struct sim *sim, const char *text, struct error *err)
{
    char *copy = strdup(text);
    if (!copy)
        return error_no_memory(err);
    char *rest = copy, *part;
    int status = STATUS_OK;
    while (!status && (part = strsep(&rest, ","))) {
        struct fault fault;
        if (!*part)
            continue;
        status = fault_parse(&fault, part, err);
        if (status)
            break;
        pthread_mutex_lock(&sim->lock);
        struct fault *more = realloc(sim->faults, (sim->fault_count + 1) * sizeof *more);
        if (more) {
            sim->faults = more;
            sim->faults[sim->fault_count++] = fault;
        } else {
            status = error_no_memory(err);
        }
        pthread_mutex_unlock(&sim->lock);
    }
    free(copy);
    return status;
}

CUresult sim_entered(struct sim *sim, const char *name)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sim->fault_count; i++) {
        struct fault *fault = &sim->faults[i];
        if (strcmp(fault->name, name) != 0)
            continue;
        fault->seen++;
        if (fault->seen != fault->at && !(fault->later && fault->seen > fault->at))
            continue;
        result = fault->code;
        for (unsigned d = 0; fault->lost && d < sim->config.devices; d++)
            sim->devices[d].lost = true;
    }
    return result;
}

CUresult sim_enter(struct sim *sim, const char *name)
{
    pthread_mutex_lock(&sim->lock);
    CUresult result = sim_entered(sim, name);
    for (unsigned d = 0; !result && d < sim->config.devices; d++)
        if (sim->devices[d].lost)
            result = CUDA_ERROR_UNKNOWN;
    pthread_mutex_unlock(&sim->lock);
    return result;
}

void sim_lose(struct sim *sim, unsigned device)
{
    pthread_mutex_lock(&sim->lock);
    if (device < sim->config.devices)
        sim->devices[device].lost = true;
    pthread_mutex_unlock(&sim->lock);
}
