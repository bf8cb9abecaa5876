/*
 * Memory of graphs.  Uses the driver table, places and the hooks; the lock is held for a few probes, never while the
 * driver runs or an event is recorded.
 */
#include "preload/graph_memory.h"

#include "preload/capture.h"
#include "preload/places.h"
#include "preload/spin.h"
#include "preload/unplaced.h"

#include <stdatomic.h>
#include <string.h>

#define GRAPH_DEVICES 64
#define GRAPH_PIECES 32   /* of a device; more grow into the last one */
#define GRAPH_CHANGES 40
#define GRAPH_LAUNCHES 8  /* of an executable graph that are always asked after */

struct piece {
    uint64_t address, size;
};

struct change {
    struct piece piece;
    bool grows;
};

static atomic_bool graph_any; /* some graph has memory */
static _Atomic uint64_t graph_devices; /* a bit for each device that nodes named */
static atomic_flag graph_lock = ATOMIC_FLAG_INIT;
static struct places graph_launches; /* executable graph -> references: launches; other: trims when they began */
static atomic_uint graph_trims;
static struct {
    uint64_t held;
    unsigned count;
    struct piece pieces[GRAPH_PIECES];
} graph_held[GRAPH_DEVICES];

void graph_memory_after_fork(void)
{
    spin_unlock(&graph_lock);
    memset(graph_held, 0, sizeof(graph_held)); /* the child has none of it */
}

void graph_memory_captured(void)
{
    if (!atomic_load_explicit(&graph_any, memory_order_relaxed))
        atomic_store(&graph_any, true);
}

void graph_memory_on(int device)
{
    if (device >= 0 && device < GRAPH_DEVICES)
        atomic_fetch_or(&graph_devices, UINT64_C(1) << device);
    graph_memory_captured();
}

bool graph_memory_launched(CUgraphExec exec)
{
    if (!atomic_load_explicit(&graph_any, memory_order_relaxed))
        return false;
    unsigned trims = atomic_load(&graph_trims);
    bool worth = true;
    spin_lock(&graph_lock);
    struct place *known = places_add(&graph_launches, (uintptr_t)exec);
    if (known && known->other != trims) {
        known->other = trims;
        known->references = 0;
    }
    if (known) {
        known->references += known->references < UINT32_MAX;
        worth = known->references <= GRAPH_LAUNCHES || (known->references & (known->references - 1)) == 0;
    }
    spin_unlock(&graph_lock);
    return worth;
}

void graph_memory_trimmed(void)
{
    atomic_fetch_add(&graph_trims, 1);
}

void graph_memory_forget(CUgraphExec exec)
{
    if (!atomic_load_explicit(&graph_any, memory_order_relaxed))
        return;
    spin_lock(&graph_lock);
    places_remove(&graph_launches, (uintptr_t)exec);
    spin_unlock(&graph_lock);
}

static unsigned add_change(struct change *changes, unsigned count, struct piece piece, bool grows)
{
    changes[count] = (struct change){piece, grows};
    return count + 1;
}

/* From what is held to `reserved`: the newest pieces go first; one that goes in part is replaced by the rest of it. */
static unsigned find_changes(unsigned device, uint64_t reserved, struct change *changes)
{
    unsigned count = 0;
    spin_lock(&graph_lock);
    struct piece *pieces = graph_held[device].pieces;
    unsigned *held = &graph_held[device].count;
    uint64_t rest = reserved > graph_held[device].held ? reserved - graph_held[device].held : 0;
    while (graph_held[device].held > reserved && *held) {
        struct piece last = pieces[--*held];
        graph_held[device].held -= last.size;
        count = add_change(changes, count, last, false);
        rest = reserved > graph_held[device].held ? reserved - graph_held[device].held : 0;
    }
    if (rest && *held == GRAPH_PIECES) {
        struct piece last = pieces[--*held];
        count = add_change(changes, count, last, false);
        graph_held[device].held -= last.size;
        rest += last.size;
    }
    if (rest) {
        pieces[*held] = (struct piece){unplaced_address(rest), rest};
        count = add_change(changes, count, pieces[(*held)++], true);
        graph_held[device].held = reserved;
    }
    spin_unlock(&graph_lock);
    return count;
}

static void measure_device(const struct hook *hook, unsigned device)
{
    cuuint64_t reserved = 0;
    struct change changes[GRAPH_CHANGES];
    if (driver.cuDeviceGetGraphMemAttribute((CUdevice)device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) !=
        CUDA_SUCCESS)
        return;
    unsigned count = find_changes(device, reserved, changes);
    for (unsigned i = 0; i < count; i++) {
        struct hook part = *hook;
        part.device_known = true;
        part.device = (uint16_t)device;
        if (changes[i].grows)
            hook_allocated(&part, RECORD_GRAPH, changes[i].piece.address, changes[i].piece.size, RECORD_UNKNOWN);
        else
            hook_gone(&part, changes[i].piece.address);
    }
}

void graph_memory_measure(struct hook *hook)
{
    if (!hook->records || !atomic_load_explicit(&graph_any, memory_order_relaxed) || capture_any() ||
        !driver.cuDeviceGetGraphMemAttribute)
        return;
    uint64_t devices = atomic_load(&graph_devices);
    uint16_t current = hook_device();
    if (current < GRAPH_DEVICES)
        devices |= UINT64_C(1) << current;
    for (; devices; devices &= devices - 1)
        measure_device(hook, (unsigned)__builtin_ctzll(devices));
}

void graph_memory_device_is_gone(struct hook *hook, unsigned device)
{
    struct change changes[GRAPH_CHANGES];
    if (device >= GRAPH_DEVICES || !atomic_load_explicit(&graph_any, memory_order_relaxed))
        return;
    unsigned count = find_changes(device, 0, changes);
    for (unsigned i = 0; i < count; i++)
        hook_gone(hook, changes[i].piece.address);
}
