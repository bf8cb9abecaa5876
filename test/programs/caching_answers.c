/*
 * What the driver says of memory, in words that do not depend on where it lies: the same whoever serves the memory.
 *
 *     caching_answers pointers | pools | refusals | capture | reset | contexts | room | streams | peers | share | signal
 *     caching_answers open     handles from standard input, for "share"
 */
#include "driver.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

#define MORE(X) \
    X(cuMemGetAddressRange_v2) X(cuPointerGetAttribute) X(cuPointerGetAttributes) X(cuIpcGetMemHandle) \
    X(cuIpcOpenMemHandle_v2) X(cuIpcCloseMemHandle) X(cuMemPoolGetAttribute) X(cuMemPoolSetAttribute) \
    X(cuMemPoolSetAccess) X(cuDeviceGetDefaultMemPool) X(cuDeviceSetMemPool) X(cuCtxCreate_v2) X(cuCtxDestroy_v2) \
    X(cuCtxGetCurrent) X(cuCtxEnablePeerAccess) X(cuDevicePrimaryCtxReset_v2) X(cuMemsetD8Async) X(cuMemcpyDtoH_v2) \
    X(cuMemFreeAsync_ptsz) X(cuMemAllocAsync_ptsz)
static struct {
#define MEMBER(name) __typeof__(&name) name;
    MORE(MEMBER)
#undef MEMBER
} more;

static void find_more(void)
{
#define FIND(name) \
    { \
        void *address = dlsym(driver_library, #name); \
        memcpy(&more.name, &address, sizeof(address)); \
    }
    MORE(FIND)
#undef FIND
}

static CUdeviceptr async(size_t bytes, CUstream stream)
{
    CUdeviceptr address = 0;
    CHECK(cu.cuMemAllocAsync(&address, bytes, stream));
    return address;
}

/* --- pointers ------------------------------------------------------------------------------------------------------ */

static void describe(const char *name, CUdeviceptr start, CUdeviceptr address)
{
    CUdeviceptr base = 1, range = 1, pointer = 1;
    CUmemoryPool own = NULL, pool = NULL;
    CUcontext context = NULL, current = NULL;
    size_t size = 0, bytes = 0;
    unsigned type = 9, capable = 9, managed = 9, mapped = 9;
    int device = 9;
    unsigned long long id = 0, again = 0;
    int result = (int)more.cuMemGetAddressRange_v2(&base, &size, address);
    printf("%s: range %d base %lld size %zu;", name, result, result ? 0 : (long long)(base - start), size);
    CHECK(more.cuDeviceGetDefaultMemPool(&own, 0));
    CHECK(more.cuCtxGetCurrent(&current));
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_MAPPED};
    void *values[] = {&range, &bytes, &pool, &type, &device, &context, &capable, &managed, &pointer, &id, &mapped};
    result = (int)more.cuPointerGetAttributes(11, attributes, values, address);
    printf(" all %d start %lld size %zu pool %s type %u device %d context %s ipc %u managed %u at %lld mapped %u;", result,
           range > 1 ? (long long)(range - start) : -1, bytes, pool == own ? "own" : pool ? "other" : "none", type, device,
           context == current ? "current" : context ? "other" : "none", capable, managed,
           pointer > 1 ? (long long)(pointer - start) : -1, mapped);
    result = (int)more.cuPointerGetAttribute(&again, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
    printf(" one %d %s\n", result, result ? "refused" : id == again ? "the same" : "another");
}

static unsigned long long id_of(CUdeviceptr address)
{
    unsigned long long id = 0;
    CHECK(more.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
    return id;
}

static void pointers(void)
{
    CUstream stream;
    CUdeviceptr first = take(1000), second = take(5000), third = take(3 * MIB), in_order;
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    in_order = async(7000, stream);
    describe("first", first, first);
    describe("inside", first, first + 999);
    describe("second", second, second + 4097);
    describe("third", third, third + 2 * MIB);
    describe("in order", in_order, in_order + 1);
    unsigned long long id = id_of(second);
    printf("ids differ: %d\n", id != id_of(first) && id != id_of(in_order));
    give(second);
    describe("freed", second, second);
    second = take(5000);
    printf("a new id: %d\n", id != id_of(second));
    CHECK(cu.cuMemFreeAsync(in_order, stream));
    CHECK(cu.cuStreamSynchronize(stream));
    describe("freed in order", in_order, in_order);
}

/* --- pools --------------------------------------------------------------------------------------------------------- */

static void pool_numbers(const char *name, CUmemoryPool pool)
{
    cuuint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
    CHECK(more.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    CHECK(more.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &reserved_high));
    CHECK(more.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    CHECK(more.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used_high));
    printf("%s: used %llu at most %llu, reserved enough: %d %d\n", name, (unsigned long long)used,
           (unsigned long long)used_high, reserved >= used, reserved_high >= reserved);
}

static void pools(void)
{
    CUmemoryPool own, other;
    CUstream stream;
    cuuint64_t zero = 0, reserved = 1;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CHECK(more.cuDeviceGetDefaultMemPool(&own, 0));
    CUdeviceptr plain = take(MIB), a = async(10000, stream), b = async(3 * MIB, stream);
    pool_numbers("two", own);
    CHECK(cu.cuMemFreeAsync(b, stream));
    CHECK(cu.cuStreamSynchronize(stream));
    pool_numbers("one", own);
    CHECK(more.cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    CHECK(more.cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    pool_numbers("reset", own);
    CHECK(cu.cuMemFreeAsync(a, stream));
    CHECK(cu.cuStreamSynchronize(stream));
    CHECK(cu.cuMemPoolTrimTo(own, 0));
    CHECK(more.cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    printf("trimmed: %llu\n", (unsigned long long)reserved);
    CHECK(cu.cuMemPoolCreate(&other, &properties));
    CHECK(more.cuDeviceSetMemPool(0, other));
    a = async(MIB, stream);
    pool_numbers("other", other);
    pool_numbers("not used", own);
    CHECK(cu.cuMemFreeAsync(a, stream));
    CHECK(more.cuDeviceSetMemPool(0, own));
    a = async(MIB, stream);
    pool_numbers("own again", own);
    give(plain);
    CHECK(cu.cuMemFree(a));
}

/* --- refusals ------------------------------------------------------------------------------------------------------ */

static void refusals(void)
{
    CUstream stream;
    CUdeviceptr a = take(1000), b = take(2000), none = 77;
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CUdeviceptr c = async(3000, stream);
    printf("nothing: %d, in order %d\n", cu.cuMemAlloc(&none, 0), cu.cuMemAllocAsync(&none, 0, stream));
    printf("nowhere: %d, in order %d\n", cu.cuMemAlloc(NULL, 100), cu.cuMemAllocAsync(NULL, 100, stream));
    printf("too much: %d %d, in order %d\n", cu.cuMemAlloc(&none, (size_t)1 << 62), cu.cuMemAlloc(&none, (size_t)1 << 45),
           cu.cuMemAllocAsync(&none, (size_t)1 << 45, stream));
    printf("free of none: %d, in order %d\n", cu.cuMemFree(0), cu.cuMemFreeAsync(0, stream));
    printf("inside: %d %d, in order %d\n", cu.cuMemFree(a + 256), cu.cuMemFree(b + 1), cu.cuMemFreeAsync(c + 512, stream));
    give(a);
    printf("twice: %d, in order %d\n", cu.cuMemFree(a), cu.cuMemFreeAsync(a, stream));
    CHECK(cu.cuMemFreeAsync(c, stream));
    CHECK(cu.cuStreamSynchronize(stream));
    printf("twice in order: %d, plain %d\n", cu.cuMemFreeAsync(c, stream), cu.cuMemFree(c));
    printf("nobody's: %d\n", cu.cuMemFree(12345 * MIB));
    a = take(500);
    CHECK(cu.cuMemFreeAsync(a, stream)); /* plain memory in the order of a stream, and the other way round */
    c = async(500, stream);
    give(c);
    give(b);
}

/* --- captures ------------------------------------------------------------------------------------------------------- */

static void capture(void)
{
    CUstream stream, other;
    CUgraph graph = NULL;
    CUdeviceptr a = take(MIB), b = take(MIB), c = 0, d = 0;
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CHECK(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cu.cuMemAllocAsync(&c, MIB, stream));
    printf("relaxed: plain %d, other %d", cu.cuMemAlloc(&d, MIB), cu.cuMemFreeAsync(b, other));
    printf(", of the graph %d, not of it %d", cu.cuMemFreeAsync(c, stream), cu.cuMemFreeAsync(a, stream));
    printf(", plain free %d, inside %d", cu.cuMemFree(d), cu.cuMemFree(a + 512));
    printf(", ours %d\n", cu.cuMemFree(a));
    printf("end: %d\n", cu.cuStreamEndCapture(stream, &graph));
    a = take(MIB);
    CHECK(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    printf("global: %d %d\n", cu.cuMemAlloc(&d, MIB), cu.cuMemFree(a));
    printf("end: %d\n", cu.cuStreamEndCapture(stream, &graph));
    give(a);
}

/* --- resets and contexts --------------------------------------------------------------------------------------------- */

static void reset(void)
{
    CUstream stream;
    CUcontext context;
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CUdeviceptr a = take(MIB), b = async(30 * MIB, stream);
    size_t before = 0, after = 0, total = 0;
    give(take(5 * MIB));
    CHECK(cu.cuMemFree(b));
    CHECK(more.cuDevicePrimaryCtxReset_v2(0));
    printf("freed with it: %d\n", cu.cuMemFree(a));
    CHECK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cu.cuCtxSetCurrent(context));
    CHECK(cu.cuMemGetInfo(&before, &total));
    a = take(2 * MIB);
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    b = async(2 * MIB, stream);
    describe("after", a, a);
    give(a);
    CHECK(cu.cuMemFreeAsync(b, stream));
    CHECK(cu.cuStreamSynchronize(stream));
    CHECK(cu.cuMemGetInfo(&after, &total));
    printf("all free: %d\n", after >= before);
}

static void contexts(void)
{
    CUcontext primary, own;
    CUdeviceptr a = take(MIB), b, c;
    CHECK(more.cuCtxGetCurrent(&primary));
    CHECK(more.cuCtxCreate_v2(&own, 0, 0));
    b = take(3 * MIB);
    describe("own", b, b + 5);
    give(a); /* of the other one */
    CHECK(cu.cuCtxSetCurrent(primary));
    c = take(2 * MIB);
    CHECK(more.cuCtxDestroy_v2(own));
    printf("went with it: %d\n", cu.cuMemFree(b));
    describe("primary", c, c);
    give(c);
}

/* --- what is cached is no obstacle ------------------------------------------------------------------------------------ */

static void room(void)
{
    CUdeviceptr blocks[8], wide;
    size_t before, after, total, pitch;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR shape = {.Width = 16384, .Height = 12288, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CHECK(cu.cuMemGetInfo(&before, &total));
    for (int i = 0; i < 8; i++)
        blocks[i] = take(total / 10);
    for (int i = 0; i < 8; i++)
        give(blocks[i]);
    CHECK(cu.cuMemGetInfo(&after, &total));
    printf("free as before: %d\n", before == after);
    CHECK(cu.cuMemAllocPitch(&wide, &pitch, 1 << 20, total / 10 * 8 >> 20, 4));
    give(wide);
    for (int i = 0; i < 8; i++)
        blocks[i] = take(total / 10);
    for (int i = 0; i < 8; i++)
        give(blocks[i]);
    CHECK(cu.cuArrayCreate(&array, &shape));
    CHECK(cu.cuArrayDestroy(array));
    blocks[0] = take(total / 10 * 9);
    printf("refused: %d\n", cu.cuMemAlloc(&wide, total / 5));
    give(blocks[0]);
    report("room");
}

/* --- streams -------------------------------------------------------------------------------------------------------- */

static void *own_stream(void *context)
{
    CUdeviceptr address = 0;
    unsigned char byte = 0;
    CHECK(cu.cuCtxSetCurrent(context));
    CHECK(more.cuMemAllocAsync_ptsz(&address, MIB, NULL));
    CHECK(more.cuMemsetD8Async(address, 7, MIB, CU_STREAM_PER_THREAD));
    CHECK(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CHECK(more.cuMemcpyDtoH_v2(&byte, address + MIB - 1, 1));
    CHECK(more.cuMemFreeAsync_ptsz(address, NULL));
    return (void *)(uintptr_t)byte;
}

/* A stream and a thread after the other: what they leave is used again. */
static void streams(void)
{
    CUcontext context;
    pthread_t thread;
    void *byte;
    unsigned long sum = 0;
    CHECK(more.cuCtxGetCurrent(&context));
    for (int i = 0; i < 50; i++) {
        CUstream stream;
        CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CUdeviceptr address = async(MIB + (size_t)i, stream);
        CHECK(cu.cuMemFreeAsync(address, stream));
        CHECK(cu.cuStreamSynchronize(stream));
        CHECK(cu.cuStreamDestroy(stream));
        if (pthread_create(&thread, NULL, own_stream, context) || pthread_join(thread, &byte))
            die("a thread", 0);
        sum += (unsigned long)(uintptr_t)byte;
        give(take(700)); /* waits for all of it */
    }
    printf("sum %lu\n", sum);
}

/* --- other devices --------------------------------------------------------------------------------------------------- */

static void peers(void)
{
    CUcontext zero, one;
    CUmemoryPool pool;
    CUstream stream;
    CHECK(more.cuCtxGetCurrent(&zero));
    CUdeviceptr a = take(MIB);
    CHECK(cu.cuDevicePrimaryCtxRetain(&one, 1));
    CHECK(cu.cuCtxSetCurrent(one));
    printf("enabled: %d\n", more.cuCtxEnablePeerAccess(zero, 0));
    CUdeviceptr b = take(MIB);
    give(a); /* of device 0, from device 1 */
    CHECK(cu.cuCtxSetCurrent(zero));
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CUdeviceptr c = async(MIB, stream);
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(more.cuDeviceGetDefaultMemPool(&pool, 0));
    CHECK(more.cuMemPoolSetAccess(pool, &access, 1));
    CUdeviceptr d = async(2 * MIB, stream);
    describe("before", c, c);
    describe("shared", d, d);
    CHECK(cu.cuCtxSetCurrent(one));
    CHECK(cu.cuMemFreeAsync(c, CU_STREAM_LEGACY)); /* in the order of a stream of another device */
    CHECK(cu.cuMemFree(d));
    give(b);
}

/* --- other processes ------------------------------------------------------------------------------------------------- */

static void open_handles(void)
{
    CUipcMemHandle handle;
    for (int i = 0; fread(&handle, sizeof(handle), 1, stdin) == 1; i++) { /* the first may open more than the block */
        CUdeviceptr address = 0, base = 0;
        size_t size = 0;
        int result = (int)more.cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        if (result) {
            printf("open: %d\n", result);
            continue;
        }
        CHECK(more.cuMemGetAddressRange_v2(&base, &size, address));
        printf("open: %d, base %lld, size %zu", result, (long long)(base - address), i || size < 1000 ? size : 1000);
        printf(", close %d\n", more.cuIpcCloseMemHandle(address));
    }
}

static void share(const char *program)
{
    CUipcMemHandle handle;
    CUstream stream;
    CUdeviceptr blocks[3] = {take(1000), take(2000), take(3000)};
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CUdeviceptr in_order = async(4000, stream);
    printf("in order: %d, nobody's: %d\n", more.cuIpcGetMemHandle(&handle, in_order),
           more.cuIpcGetMemHandle(&handle, 99 * MIB));
    fflush(stdout);
    char command[4096];
    snprintf(command, sizeof(command), "'%s' open", program);
    FILE *other = popen(command, "w");
    for (int i = 0; i < 3; i++) {
        CHECK(more.cuIpcGetMemHandle(&handle, blocks[i]));
        if (!other || fwrite(&handle, sizeof(handle), 1, other) != 1)
            die("the other process", 0);
    }
    if (pclose(other))
        die("the other process", 1);
    CUdeviceptr later = take(1000);
    describe("later", later, later);
    for (int i = 0; i < 3; i++)
        give(blocks[i]);
    give(later);
}

/* --- signals --------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t handled;
static CUdeviceptr kept[64];

static void on_signal(int number)
{
    CUdeviceptr address = 0;
    (void)number;
    if (cu.cuMemAlloc(&address, 4096) == CUDA_SUCCESS && cu.cuMemFree(address) == CUDA_SUCCESS)
        handled++;
}

/* Allocations in a handler, between calls of the program. */
static void in_signals(void)
{
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 64; i++) {
        kept[i] = take(1000 + (size_t)i);
        raise(SIGUSR1);
    }
    for (int i = 0; i < 64; i++)
        give(kept[i]);
    printf("handled %d\n", (int)handled);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    static const struct {
        const char *word;
        void (*run)(void);
    } all[] = {{"pointers", pointers}, {"pools", pools}, {"refusals", refusals}, {"capture", capture}, {"reset", reset},
        {"contexts", contexts}, {"room", room}, {"streams", streams}, {"peers", peers}, {"open", open_handles},
        {"signal", in_signals}};
    driver_ready();
    find_more();
    if (!strcmp(word, "share"))
        share(argv[0]);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!strcmp(word, all[i].word))
            all[i].run();
    return 0;
}
