/* What the files of the simulated device share.  Everything here is under sim->lock. */
#ifndef SIM_SIM_PRIVATE_H
#define SIM_SIM_PRIVATE_H

#include <pthread.h>
#include <stddef.h>

#include "device/placement.h"
#include "sim/sim.h"

#define SIM_PAGE PLACEMENT_PAGE
#define SIM_SMALL (1ull << 20) /* requests up to this share a slab */
#define SIM_UNIT 512u          /* and are multiples of this */
#define SIM_SLAB_UNITS (SIM_PAGE / SIM_UNIT)

/* An address range and what holds its contents. */
struct entry {
    struct sim_range range;
    void *data;           /* taken when first touched; the address itself for host memory */
    uint64_t data_offset; /* of the range within data */
    bool own_data;        /* data is ours to unmap, data_bytes long */
    uint64_t data_bytes;
};

struct slab {
    uint64_t address;
    uint32_t used; /* units */
    uint64_t map[SIM_SLAB_UNITS / 64];
};

struct device {
    uint64_t bytes, used;
    struct placement *placement;
    struct slab **slabs;
    size_t slab_count, slab_room;
    bool lost;
};

struct fault {
    char name[64];
    uint64_t at, seen;
    bool later; /* that call and all after it */
    bool lost;
    CUresult code;
};

struct reservation {
    uint64_t address, bytes;
};

struct physical {
    uint64_t handle, bytes, references; /* handles and mappings */
    uint64_t handles;
    unsigned device;
    void *data;
};

struct sim {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* a stream got on */
    struct sim_config config;
    struct device *devices;
    struct entry *entries; /* by address */
    size_t entry_count, entry_room;
    uint64_t next_id, next_handle;
    struct reservation *reservations; /* by address */
    size_t reservation_count, reservation_room;
    struct physical *physicals;
    size_t physical_count, physical_room;
    struct fault *faults;
    size_t fault_count;
    struct sim_stream *streams;
    struct sim_event *events;
    struct sim_pool *pools;
};

bool sim_grow(void **array, size_t *room, size_t need, size_t size);
CUresult sim_device_take(struct sim *sim, unsigned device, uint64_t bytes, uint64_t *address);
void sim_device_put(struct sim *sim, unsigned device, uint64_t address, uint64_t bytes);
CUresult sim_entry_add(struct sim *sim, const struct entry *entry);
struct entry *sim_entry_at(struct sim *sim, uint64_t address);      /* that begins there */
struct entry *sim_entry_holding(struct sim *sim, uint64_t address); /* that holds it */
void sim_entry_remove(struct sim *sim, struct entry *entry);
void *sim_entry_data(struct sim *sim, struct entry *entry); /* NULL: no memory */
CUresult sim_entered(struct sim *sim, const char *name);    /* sim_enter, the lock held */
void sim_streams_free(struct sim *sim);
void sim_pools_free(struct sim *sim);

#endif
