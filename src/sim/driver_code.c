/*
 * The simulated driver: modules, libraries, kernels.  May use: the simulated
 * device.
 *
 * Code is accepted whatever it is, every function that is asked for is there,
 * and a launch does nothing.  A library and a module are the same thing, and
 * so are a kernel and a function.  Variables are those that somebody told us of
 * (control.h), since nobody reads the code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/driver.h"

struct CUfunc_st {
    enum magic magic;
    CUmodule module;
    char *name;
    int attributes[CU_FUNC_ATTRIBUTE_MAX];
    CUfunction next;
};

struct variable {
    char *name;
    uint64_t address, bytes, id; /* of the memory in the context where it was asked for last; address 0: none */
    bool managed;
    struct variable *next;
};

struct CUmod_st {
    enum magic magic;
    CUcontext context; /* NULL for a library: the current one */
    unsigned device;
    uint64_t bytes;    /* taken from it */
    CUfunction functions;
    struct variable *variables;
};

static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_module(CUmodule module)
{
    return module && module->magic == MAGIC_MODULE;
}

static bool is_function(CUfunction function)
{
    return function && function->magic == MAGIC_FUNCTION;
}

/* A library takes its memory when something of it is asked for in a context. */
static CUresult module_take(CUmodule module)
{
    CUcontext context = driver_current();
    if (module->bytes || !driver.module_bytes || !context)
        return CUDA_SUCCESS;
    CUresult result = sim_charge(driver.sim, context->device, driver.module_bytes);
    if (!result) {
        module->device = context->device;
        module->bytes = driver.module_bytes;
    }
    return result;
}

static CUresult module_new(CUmodule *module, const void *image, CUcontext context)
{
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *fresh = (struct CUmod_st){.magic = MAGIC_MODULE, .context = context};
    CUresult result = context ? module_take(fresh) : CUDA_SUCCESS;
    if (result) {
        free(fresh);
        return result;
    }
    *module = fresh;
    return CUDA_SUCCESS;
}

/* A variable's memory goes with its context. */
static bool variable_lives(const struct variable *v)
{
    struct sim_range range;
    return v->address && sim_find(driver.sim, v->address, &range) && range.id == v->id;
}

static void module_free(CUmodule module)
{
    while (module->functions) {
        CUfunction function = module->functions;
        module->functions = function->next;
        function->magic = 0;
        free(function->name);
        free(function);
    }
    while (module->variables) {
        struct variable *variable = module->variables;
        module->variables = variable->next;
        if (variable_lives(variable))
            sim_release(driver.sim, variable->address);
        free(variable->name);
        free(variable);
    }
    sim_discharge(driver.sim, module->device, module->bytes);
    module->magic = 0;
    free(module);
}

static CUresult readable(const char *path)
{
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file)
        return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    fclose(file);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    ENTER(cuModuleLoad, NEED_CONTEXT);
    CUresult result = readable(path);
    return result ? result : module_new(module, path, driver_current());
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTER(cuModuleLoadData, NEED_CONTEXT);
    return module_new(module, image, driver_current());
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int option_count, CUjit_option *options,
    void **values)
{
    ENTER(cuModuleLoadDataEx, NEED_CONTEXT);
    if (option_count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    return module_new(module, image, driver_current());
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    ENTER(cuModuleLoadFatBinary, NEED_CONTEXT);
    return module_new(module, image, driver_current());
}

CUresult cuModuleUnload(CUmodule module)
{
    ENTER(cuModuleUnload, NEED_CONTEXT);
    if (!is_module(module))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&code_lock);
    module_free(module);
    pthread_mutex_unlock(&code_lock);
    return CUDA_SUCCESS;
}

static CUresult function_of(CUfunction *result, CUmodule module, const char *name)
{
    if (!result || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_module(module))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&code_lock);
    CUfunction function = module->functions;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    if (!function && (function = calloc(1, sizeof *function))) {
        *function = (struct CUfunc_st){.magic = MAGIC_FUNCTION, .module = module, .name = strdup(name),
            .attributes = {[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024, [CU_FUNC_ATTRIBUTE_NUM_REGS] = 32,
                [CU_FUNC_ATTRIBUTE_PTX_VERSION] = 90, [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90},
            .next = module->functions};
        if (function->name) {
            module->functions = function;
        } else {
            free(function);
            function = NULL;
        }
    }
    pthread_mutex_unlock(&code_lock);
    *result = function;
    return function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER(cuModuleGetFunction, NEED_CONTEXT);
    return function_of(function, module, name);
}

/* Variables. */

CUresult cudamemSimControlVariable(CUmodule module, const char *name, size_t bytes, int managed)
{
    if (!is_module(module) || !name || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct variable *variable = calloc(1, sizeof *variable);
    char *copy = strdup(name);
    if (!variable || !copy) {
        free(variable);
        free(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&code_lock);
    *variable = (struct variable){.name = copy, .bytes = bytes, .managed = managed != 0, .next = module->variables};
    module->variables = variable;
    pthread_mutex_unlock(&code_lock);
    return CUDA_SUCCESS;
}

CUresult driver_variable(CUmodule module, const char *name, CUdeviceptr *address, size_t *bytes)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_module(module))
        return CUDA_ERROR_INVALID_HANDLE;
    CUcontext context = driver_current();
    pthread_mutex_lock(&code_lock);
    struct variable *v = module->variables;
    while (v && strcmp(v->name, name) != 0)
        v = v->next;
    CUresult result = v ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    if (v && !variable_lives(v)) {
        struct sim_range range;
        result = v->managed
                     ? sim_host_get(driver.sim, v->bytes, SIM_MANAGED, context->device, context, 1, &v->address)
                     : sim_get(driver.sim, context->device, v->bytes, SIM_MODULE, context, &v->address);
        if (result)
            v->address = 0;
        else if (sim_find(driver.sim, v->address, &range))
            v->id = range.id;
        if (!result)
            sim_fill(driver.sim, v->address, 0, 1, v->bytes);
    }
    if (!result && address)
        *address = v->address;
    if (!result && bytes)
        *bytes = v->bytes;
    pthread_mutex_unlock(&code_lock);
    return result;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    ENTER(cuModuleGetGlobal_v2, NEED_CONTEXT);
    return driver_variable(module, name, address, bytes);
}

CUresult cuModuleGetGlobal(CUdeviceptr_v1 *address, unsigned int *bytes, CUmodule module, const char *name)
{
    (void)address;
    (void)bytes;
    (void)module;
    (void)name;
    ENTER(cuModuleGetGlobal, NEED_INIT);
    return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    ENTER(cuModuleGetLoadingMode, NEED_INIT);
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* Libraries. */

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values,
    unsigned int option_count, CUlibraryOption *library_options, void **library_values,
    unsigned int library_option_count)
{
    ENTER(cuLibraryLoadData, NEED_INIT);
    if ((option_count && (!options || !values)) || (library_option_count && (!library_options || !library_values)))
        return CUDA_ERROR_INVALID_VALUE;
    return module_new((CUmodule *)(void *)library, image, NULL);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
    unsigned int option_count, CUlibraryOption *library_options, void **library_values,
    unsigned int library_option_count)
{
    ENTER(cuLibraryLoadFromFile, NEED_INIT);
    if ((option_count && (!options || !values)) || (library_option_count && (!library_options || !library_values)))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = readable(path);
    return result ? result : module_new((CUmodule *)(void *)library, path, NULL);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    CUmodule module = (CUmodule)(void *)library;
    ENTER(cuLibraryUnload, NEED_INIT);
    if (!is_module(module))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&code_lock);
    module_free(module);
    pthread_mutex_unlock(&code_lock);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    ENTER(cuLibraryGetKernel, NEED_INIT);
    return function_of((CUfunction *)(void *)kernel, (CUmodule)(void *)library, name);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    ENTER(cuLibraryGetModule, NEED_CONTEXT);
    if (!module || !is_module((CUmodule)(void *)library))
        return CUDA_ERROR_INVALID_VALUE;
    *module = (CUmodule)(void *)library;
    return module_take(*module);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    ENTER(cuLibraryGetGlobal, NEED_CONTEXT);
    return driver_variable((CUmodule)(void *)library, name, address, bytes);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
    ENTER(cuLibraryGetManaged, NEED_CONTEXT);
    return driver_variable((CUmodule)(void *)library, name, address, bytes);
}

/* Functions and launches. */

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    ENTER(cuKernelGetFunction, NEED_CONTEXT);
    if (!function || !is_function((CUfunction)(void *)kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    *function = (CUfunction)(void *)kernel;
    return module_take((*function)->module);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    ENTER(cuFuncGetAttribute, NEED_INIT);
    if (!value || (unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *value = function->attributes[attribute];
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    ENTER(cuFuncSetAttribute, NEED_INIT);
    if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    function->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache preference)
{
    (void)preference;
    ENTER(cuFuncSetCacheConfig, NEED_INIT);
    return is_function(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    ENTER(cuFuncGetModule, NEED_INIT);
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *module = function->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
    ENTER(cuFuncLoad, NEED_CONTEXT);
    return is_function(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult launch(CUfunction function, const unsigned dimensions[6], CUstream stream)
{
    CUstream s = driver_stream(stream);
    if (!is_function(function) || !s)
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t threads = (uint64_t)dimensions[3] * dimensions[4] * dimensions[5];
    for (int i = 0; i < 6; i++)
        if (dimensions[i] == 0)
            return CUDA_ERROR_INVALID_VALUE;
    if (threads > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    CUgraph graph = s->capture ? s->capture->graph : NULL;
    driver_unlock();
    return graph ? driver_graph_add(graph, NULL, CU_GRAPH_NODE_TYPE_KERNEL, NULL) : module_take(function->module);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream,
    void **parameters, void **extra)
{
    (void)shared;
    (void)parameters;
    (void)extra;
    ENTER(cuLaunchKernel, NEED_CONTEXT);
    return launch(function, (unsigned[]){grid_x, grid_y, grid_z, block_x, block_y, block_z}, stream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
    unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
    CUstream stream, void **parameters)
{
    (void)shared;
    (void)parameters;
    ENTER(cuLaunchCooperativeKernel, NEED_CONTEXT);
    return launch(function, (unsigned[]){grid_x, grid_y, grid_z, block_x, block_y, block_z}, stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    (void)parameters;
    (void)extra;
    ENTER(cuLaunchKernelEx, NEED_CONTEXT);
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(function, (unsigned[]){config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
        config->blockDimY, config->blockDimZ}, config->hStream);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int block,
    size_t dynamic, unsigned int flags)
{
    (void)dynamic;
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, NEED_CONTEXT);
    if (!blocks || block <= 0 || block > 1024 || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *blocks = 2048 / block < 32 ? 2048 / block : 32;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block, size_t dynamic)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block, dynamic, 0);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, CUoccupancyB2DSize dynamic_of,
    size_t dynamic, int limit)
{
    (void)dynamic_of;
    (void)dynamic;
    ENTER(cuOccupancyMaxPotentialBlockSize, NEED_CONTEXT);
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = 132 * (2048 / *block);
    return CUDA_SUCCESS;
}
