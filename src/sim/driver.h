/*
 * What the files of the simulated libcuda.so.1 share.  The handles of the
 * driver API are the structures here.  A destroyed context stays, marked, so
 * that its use is recognised; other handles are freed.
 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "device/cuda_abi.h"
#include "sim/control.h"
#include "sim/sim.h"

#define DRIVER_VERSION 13000

enum magic { MAGIC_CONTEXT = 0x43545831, MAGIC_STREAM, MAGIC_EVENT, MAGIC_MODULE, MAGIC_FUNCTION, MAGIC_LIBRARY,
    MAGIC_ARRAY, MAGIC_MIPMAP, MAGIC_POOL, MAGIC_GRAPH, MAGIC_NODE, MAGIC_EXEC, MAGIC_EXTERNAL };

struct CUctx_st {
    enum magic magic;
    unsigned device;
    unsigned flags, version;
    uint64_t id;
    bool primary, alive;
    unsigned retained;
    uint64_t charged;
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache;
    CUstream legacy;  /* the default stream */
    CUstream streams; /* all of them */
    CUcontext next;
};

struct capture {
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    uint64_t id;
    bool invalid, foreign; /* foreign: the graph was there before */
};

struct CUstream_st {
    enum magic magic;
    CUcontext context;
    struct sim_stream *work;
    unsigned flags;
    int priority;
    uint64_t id;
    struct capture *capture;
    CUstream next;
};

struct CUevent_st {
    enum magic magic;
    CUcontext context;
    struct sim_event *event;
    unsigned flags;
    bool recorded;
    uint64_t capture; /* id of the one it was recorded in; 0: none */
};

struct CUmemPoolHandle_st {
    enum magic magic;
    struct sim_pool *pool;
    bool is_default;
    int reuse[4];
    CUmemAccess_flags access;
};

/* One copy, fill or call, as a graph keeps it. */
struct operation {
    enum { OPERATION_COPY, OPERATION_FILL, OPERATION_CALL } kind;
    uint64_t target, source, bytes, rows, target_pitch, source_pitch; /* bytes: of a row, or the count of a fill */
    uint32_t pattern;
    unsigned size;
    CUhostFn call;
    void *data;
};

struct driver {
    pthread_mutex_t lock; /* contexts, streams, captures */
    struct sim *sim;
    atomic_bool ready, careful; /* careful: there are faults, or a device is lost */
    atomic_bool forked;
    char wrong[480]; /* what is wrong with the environment */
    CUcontext contexts;
    CUcontext primary[SIM_DEVICES_MAX];
    unsigned primary_flags[SIM_DEVICES_MAX];
    CUmemoryPool default_pool[SIM_DEVICES_MAX], pool[SIM_DEVICES_MAX];
    uint64_t next_id;
    atomic_uint captures; /* under way */
    uint64_t graph_used[SIM_DEVICES_MAX], graph_used_high[SIM_DEVICES_MAX];
    uint64_t graph_reserved[SIM_DEVICES_MAX], graph_reserved_high[SIM_DEVICES_MAX];
    uint64_t module_bytes; /* what a module or library takes for itself */
};
extern struct driver driver;

/* Every entry point begins with ENTER: it counts the call and returns what keeps it from going on. */
enum need { NEED_NOTHING, NEED_INIT, NEED_CONTEXT, NEED_SAFE /* a context, and no capture that forbids it */ };
struct call {
    const char *name;
    atomic_ullong count;
    atomic_bool listed;
    struct call *next;
};
CUresult driver_enter(struct call *call, enum need need);
#define ENTER(entry, need) \
    do { \
        static struct call call_ = {#entry, 0, false, NULL}; \
        CUresult enter_ = driver_enter(&call_, need); \
        if (enter_ != CUDA_SUCCESS) \
            return enter_; \
    } while (0)

CUcontext driver_current(void); /* NULL: none */
bool driver_device(CUdevice device);
bool driver_context_ok(CUcontext context);
void driver_lock(void);
void driver_unlock(void);
uint64_t driver_id(void);

/* NULL, legacy and per-thread handles become the stream they mean; NULL: it is none. */
CUstream driver_stream(CUstream stream);
CUstream driver_stream_new(CUcontext context, unsigned flags, int priority);
void driver_stream_drop(CUstream stream); /* frees; the caller unlinked it */
void driver_settle(unsigned device);      /* what a synchronisation does to pools */
void driver_finish(unsigned device);      /* all work of a device */
CUresult driver_capture_check(void);      /* may a call that captures forbid be made? */
struct capture *driver_capture(uint64_t id); /* if it is under way; the lock is held */

/* Where an array's contents are, the length of a row and the number of rows in a plane; false: it is no array. */
bool driver_array(CUarray array, uint64_t *address, uint64_t *row, uint64_t *rows, uint64_t *bytes);

/* Do an operation in the order of a stream: now, or when a graph under capture is launched. */
CUresult driver_operate(CUstream stream, const struct operation *operation);
CUresult driver_perform(const struct operation *operation);

/* Memory that graphs allocate.  _free is true if the address is theirs. */
CUresult driver_graph_alloc(CUgraph graph, CUgraphNode *node, size_t bytes, unsigned device, CUdeviceptr *address);
CUresult driver_graph_free(CUgraph graph, CUgraphNode *node, CUdeviceptr address);
CUresult driver_graph_add(CUgraph graph, CUgraphNode *node, CUgraphNodeType type, const struct operation *operation);
bool driver_graph_release(CUdeviceptr address, CUresult *result);
/* Addresses of such memory; what is behind one comes (wanted) and goes with the launches. */
CUresult driver_owned_new(size_t bytes, unsigned device, uint64_t *address);
void driver_owned_drop(uint64_t address);
bool driver_owned_known(uint64_t address);
CUresult driver_owned_back(uint64_t address, bool wanted);
void driver_graph_destroy(CUgraph graph);

CUresult driver_pool_new(unsigned device, uint64_t maximum, bool is_default, CUmemoryPool *pool);
CUresult driver_variable(CUmodule module, const char *name, CUdeviceptr *address, size_t *bytes);

#endif
