/* Memory of graphs: allocated and freed under capture, and by nodes. */
#include "driver.h"

static unsigned long long calls(void)
{
    unsigned long long (*count)(const char *) = NULL;
    void *address = NULL;
    CUdriverProcAddressQueryResult status;
    if (driver_look_up("cudamemSimControlCalls", &address, 0, 0, &status) || !address)
        return 0;
    memcpy(&count, &address, sizeof address);
    return count(NULL);
}

int main(void)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode made, freed;
    CUdeviceptr address;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.bytesize = 3 * MIB, .poolProps = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}}};
    driver_ready();
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    (void)calls(); /* its own look-up is a call, too */
    CHECK(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    unsigned long long before = calls();
    CHECK(cu.cuMemAllocAsync(&address, MIB, stream));
    CHECK(cu.cuMemFreeAsync(address, stream));
    unsigned long long during = calls() - before;
    CHECK(cu.cuStreamEndCapture(stream, &graph));
    printf("during capture %llu driver calls\n", during ? during - 1 : 0); /* less the look-up of calls() */
    CHECK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cu.cuGraphLaunch(exec, stream));
    CHECK(cu.cuGraphLaunch(exec, stream));
    CHECK(cu.cuStreamSynchronize(stream));
    CHECK(cu.cuGraphExecDestroy(exec));
    CHECK(cu.cuGraphDestroy(graph));

    CHECK(cu.cuGraphCreate(&graph, 0));
    CHECK(cu.cuGraphAddMemAllocNode(&made, graph, NULL, 0, &parameters));
    CHECK(cu.cuGraphAddMemFreeNode(&freed, graph, &made, 1, parameters.dptr));
    CHECK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cu.cuGraphLaunch(exec, stream));
    CHECK(cu.cuStreamSynchronize(stream));
    CHECK(cu.cuGraphExecDestroy(exec));
    CHECK(cu.cuGraphDestroy(graph));
    CHECK(cu.cuStreamDestroy(stream));
    done.allocations = done.frees = 2;
    done.bytes = 4 * MIB;
    report("graph");
    return 0;
}
