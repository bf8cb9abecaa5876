/* A caching allocator that reports its blocks as PyTorch's does; see meson.build for the words. */
#include <sys/wait.h>

#include "driver.h"
#include "torch_hooks.h"

#define CUDA 1
#define PAGE (2 * MIB)

static size_t allocated, reserved;

static NOINLINE void block_taken(CUdeviceptr address, size_t size, int device)
{
    allocated += size;
    report_memory((void *)(uintptr_t)address, (int64_t)size, allocated, reserved,
                  (struct torch_device){CUDA, (int8_t)device});
}

static NOINLINE void block_given(CUdeviceptr address, size_t size)
{
    allocated -= size;
    report_memory((void *)(uintptr_t)address, -(int64_t)size, allocated, reserved, (struct torch_device){CUDA, 0});
}

/* Two segments with blocks, one of them empty in the end and one given back; between them memory of somebody else. */
static NOINLINE void train(void)
{
    CUdeviceptr small = take(2 * MIB), other = take(3 * MIB), kept_other = take(1000), large = take(20 * MIB);
    reserved = 22 * MIB;
    block_taken(small, 1024, 0);
    block_taken(small + 1024, 512, 0);
    block_taken(large, 4 * MIB, 0);
    block_taken(large + 4 * MIB, 2 * MIB, 0);
    block_given(small, 1024);
    give(other);
    block_given(large, 4 * MIB);
    CUdeviceptr passing = take(20 * MIB);
    block_taken(passing, 20 * MIB, 0);
    block_given(passing, 20 * MIB);
    give(passing);
    (void)kept_other;
    /* other devices' reports are not ours */
    report_memory(&allocated, 64, 0, 0, (struct torch_device){0, -1});
    report_memory(&allocated, -64, 0, 0, (struct torch_device){0, -1});
}

static void map_page(CUdeviceptr address)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle page;
    CHECK(cu.cuMemCreate(&page, PAGE, &properties, 0));
    CHECK(cu.cuMemMap(address, PAGE, 0, page, 0));
    CHECK(cu.cuMemRelease(page));
}

/* Two streams in turn; frees are of the stream that the block was taken for. */
static NOINLINE void use_streams(void)
{
    CUdeviceptr small = take(2 * MIB);
    block_taken(small, 512, 0);
    torch_use_stream(77);
    block_taken(small + 512, 1024, 0);
    block_given(small, 512);
    torch_use_stream(0);
    block_given(small + 512, 1024);
}

/* A segment that grows: three pages under one block, and a fourth whose only block begins in the third; two go. */
static NOINLINE void expand(void)
{
    CUdeviceptr start = 0;
    CHECK(cu.cuMemAddressReserve(&start, 32 * MIB, 0, 0, 0));
    for (size_t i = 0; i < 3; i++)
        map_page(start + i * PAGE);
    block_taken(start, 3 * PAGE, 0);
    block_given(start, 3 * PAGE);
    map_page(start + 3 * PAGE);
    block_taken(start + MIB, 2 * MIB, 0);
    block_taken(start + 3 * MIB, MIB, 0);
    block_taken(start + 2 * PAGE, 2 * PAGE, 0);
    block_given(start + 2 * PAGE, 2 * PAGE);
    CHECK(cu.cuMemUnmap(start + 2 * PAGE, 2 * PAGE));
}

/* Refused by the driver, which says so itself; then by a limit that the driver knows nothing of. */
static NOINLINE void ask_too_much(void)
{
    CUdeviceptr address = 0;
    size_t bytes = (size_t)1 << 40;
    printf("refused: %d\n", (int)cu.cuMemAlloc(&address, bytes));
    report_oom((int64_t)bytes, allocated, reserved, (struct torch_device){CUDA, 0});
    report_oom(7 * 512, allocated, reserved, (struct torch_device){CUDA, 0});
}

static NOINLINE void loop(size_t rounds)
{
    CUdeviceptr large = take(20 * MIB), empty = take(20 * MIB), other = take(5 * MIB);
    (void)other;
    block_taken(empty, 20 * MIB, 0);
    block_given(empty, 20 * MIB);
    for (size_t i = 0; i < rounds; i++) {
        block_taken(large, MIB, 0);
        block_given(large, MIB);
    }
    give(empty);
}

/* The child lets go of what its parent held. */
static int child_work(CUdeviceptr held)
{
    block_given(held, 512);
    return 0;
}

static void fork_with_blocks(void)
{
    CUdeviceptr segment = take(2 * MIB);
    int status = 0;
    block_taken(segment, 512, 0);
    pid_t child = fork();
    if (child == 0)
        exit(child_work(segment));
    if (waitpid(child, &status, 0) != child || status)
        die("child", status);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "train";
    driver_ready();
    if (strcmp(what, "expand") == 0)
        expand();
    else if (strcmp(what, "oom") == 0)
        ask_too_much();
    else if (strcmp(what, "loop") == 0)
        loop(argc > 2 ? strtoull(argv[2], NULL, 10) : 10);
    else if (strcmp(what, "streams") == 0)
        use_streams();
    else if (strcmp(what, "full") == 0)
        train(), ask_too_much();
    else if (strcmp(what, "fork") == 0)
        fork_with_blocks();
    else
        train();
    struct torch_reports reports = torch_reported();
    printf("reported: %u %u %u %lld %lld\n", reports.taken, reports.given, reports.refused, reports.bytes,
           reports.last);
    report("torch");
    if (argc > 2 && strcmp(what, "exec") == 0)
        execvp(argv[2], argv + 2);
    return 0;
}
