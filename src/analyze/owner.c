/* Owners of memory by the stacks that asked for it.  May use src/snapshot and src/base. */
#include "analyze/owner.h"

#include "analyze/frame_text.h"

#include <stdlib.h>
#include <string.h>

/* Parts of paths of libraries, in the order in which they are tried, and what they are called; NULL: passed over, as the
 * way to the driver and not who wanted memory. */
static const struct {
    const char *part, *name;
} owner_libraries[] = {
    {"/libcudamem-", NULL},
    {"/libcuda.so", NULL},
    {"/libcudart", NULL},
    {"/libnvidia-", NULL},
    {"/cuda/bindings/", NULL},
    {"/cuda/_cuda/", NULL},
    {"/_ctypes.", NULL},
    {"/libffi.so", NULL},
    {"/libpython", NULL},
    {"/bin/python", NULL},
    {"/libc.so", NULL},
    {"/libpthread", NULL},
    {"/libdl.so", NULL},
    {"/ld-linux", NULL},
    {"/ld64.so", NULL},
    {"/libstdc++", NULL},
    {"/libgcc_s", NULL},
    {"/jaxlib/", "JAX"},
    {"/jax_cuda", "JAX"},
    {"/xla_cuda", "JAX"},
    {"/libjax", "JAX"},
    {"/cupy_backends/", "CuPy"},
    {"/cupy/", "CuPy"},
    {"/librmm", "RMM"},
    {"/rmm/", "RMM"},
    {"/libcublas", "cuBLAS"},
    {"/libcudnn", "cuDNN"},
    {"/libnccl", "NCCL"},
    {"/libcufft", "cuFFT"},
    {"/libcusparse", "cuSPARSE"},
    {"/libcusolver", "cuSOLVER"},
    {"/libcurand", "cuRAND"},
    {"/libcutensor", "cuTENSOR"},
    {"/libnvshmem", "NVSHMEM"},
    {"/libnvinfer", "TensorRT"},
    {"/libnvjpeg", "nvJPEG"},
    {"/libnpp", "NPP"},
    {"/libtriton", "Triton"},
    {"/triton/", "Triton"},
    {"/.triton/", "Triton"},
    {"/libc10", "PyTorch"},
    {"/libtorch", "PyTorch"},
    {"/torch/_C", "PyTorch"},
    {"/torch/lib/", "PyTorch"},
    {"/libtensorflow", "TensorFlow"},
    {"/tensorflow/", "TensorFlow"},
    {"/libonnxruntime", "ONNX Runtime"},
    {"/onnxruntime", "ONNX Runtime"},
    {"/libcupti", "CUPTI"},
};

static const struct {
    const char *name, *advice;
} owner_pools[] = {
    {"JAX", "XLA_PYTHON_CLIENT_PREALLOCATE=false, or XLA_PYTHON_CLIENT_ALLOCATOR=platform for each by itself"},
    {"CuPy", "cupy.cuda.set_allocator(None)"},
    {"RMM", "rmm.reinitialize(pool_allocator=False)"},
};

const char *owner_pool_advice(const char *name)
{
    for (size_t i = 0; i < sizeof(owner_pools) / sizeof(*owner_pools); i++)
        if (strcmp(name, owner_pools[i].name) == 0)
            return owner_pools[i].advice;
    return NULL;
}

/* A library that is known by no other name: libfoo.so.1 is foo, a program is its file's name. */
static uint32_t by_file(struct owners *owners, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *end = strstr(name, ".so");
    size_t length = end && end > name ? (size_t)(end - name) : strlen(name);
    if (end && length > 3 && memcmp(name, "lib", 3) == 0) {
        name += 3;
        length -= 3;
    }
    const char *dot = end ? memchr(name, '.', length) : NULL; /* of an extension module of Python: its tag */
    if (dot && dot > name)
        length = (size_t)(dot - name);
    return length ? strings_intern(owners->names, name, length) : OWNER_UNKNOWN;
}

/* The owner that a library is, OWNER_UNKNOWN if it is passed over, STRING_NONE without memory. */
static uint32_t by_library(struct owners *owners, const char *path)
{
    char rooted[4096];
    size_t length = strlen(path);
    if (!length)
        return OWNER_UNKNOWN;
    if (*path != '/' && length < sizeof(rooted) - 1) { /* so that a bare name has its slash, too */
        rooted[0] = '/';
        memcpy(rooted + 1, path, length + 1);
        path = rooted;
    }
    for (size_t i = 0; i < sizeof(owner_libraries) / sizeof(*owner_libraries); i++)
        if (strstr(path, owner_libraries[i].part))
            return owner_libraries[i].name ? strings_intern_text(owners->names, owner_libraries[i].name)
                                           : OWNER_UNKNOWN;
    return by_file(owners, path);
}

/* The top package of a Python file; a script by its own name; Python's own library is passed over. */
static uint32_t by_package(struct owners *owners, const char *file, size_t length)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        const char *found = memmem(file, length, folders[i], strlen(folders[i]));
        if (!found)
            continue;
        const char *name = found + strlen(folders[i]);
        size_t rest = length - (size_t)(name - file), part = 0;
        while (part < rest && name[part] != '/' && name[part] != '.')
            part++;
        return part ? strings_intern(owners->names, name, part) : OWNER_UNKNOWN;
    }
    if (memmem(file, length, "/lib/python", strlen("/lib/python")) || (length && *file == '<'))
        return OWNER_UNKNOWN;
    const char *slash = memrchr(file, '/', length), *name = slash ? slash + 1 : file;
    size_t rest = length - (size_t)(name - file);
    return rest ? strings_intern(owners->names, name, rest) : OWNER_UNKNOWN;
}

static uint32_t by_frame(struct owners *owners, const struct frame *frame)
{
    size_t length;
    if (frame->module != NONE32)
        return by_library(owners, snapshot_content_text(owners->snapshot, owners->snapshot->modules[frame->module].path,
                                                        NULL));
    if (!frame_is_python(owners->snapshot, frame))
        return OWNER_UNKNOWN;
    const char *file = snapshot_object_text(owners->snapshot, frame->filename, &length);
    return by_package(owners, file, length);
}

/* Callers come before what they call: a stack's owner is its innermost frame's, or else its caller's.  A library comes
 * before Python: what is native of a mixed stack says more. */
static int find_owners(struct owners *owners, uint32_t *of_frame)
{
    const struct snapshot *snapshot = owners->snapshot;
    for (size_t i = 0; i < snapshot->frame_count; i++)
        if ((of_frame[i] = by_frame(owners, &snapshot->frames[i])) == STRING_NONE)
            return STATUS_NO_MEMORY;
    owners->of_stack[STACK_EMPTY] = OWNER_UNKNOWN;
    owners->frame_of[STACK_EMPTY] = NONE32;
    for (size_t i = 1; i < snapshot->stack_count; i++) {
        const struct stack_node *node = &snapshot->stacks[i];
        uint32_t own = of_frame[node->frame], callers = owners->of_stack[node->parent];
        uint32_t theirs = owners->frame_of[node->parent];
        bool is_native = snapshot->frames[node->frame].module != NONE32;
        bool has_native = theirs != NONE32 && snapshot->frames[theirs].module != NONE32;
        bool mine = own != OWNER_UNKNOWN && (is_native || !has_native);
        owners->of_stack[i] = mine ? own : callers;
        owners->frame_of[i] = mine ? node->frame : theirs;
    }
    owners->count = strings_count(owners->names);
    return STATUS_OK;
}

int owners_open(const struct snapshot *snapshot, struct owners *owners, struct error *err)
{
    uint32_t *of_frame = malloc((snapshot->frame_count + 1) * sizeof(*of_frame));
    *owners = (struct owners){.snapshot = snapshot, .names = strings_new()};
    owners->of_stack = malloc((snapshot->stack_count + 1) * sizeof(*owners->of_stack));
    owners->frame_of = malloc((snapshot->stack_count + 1) * sizeof(*owners->frame_of));
    bool failed = !of_frame || !owners->names || !owners->of_stack || !owners->frame_of || find_owners(owners, of_frame);
    free(of_frame);
    if (failed)
        owners_close(owners);
    return failed ? error_no_memory(err) : STATUS_OK;
}

void owners_close(struct owners *owners)
{
    strings_free(owners->names);
    free(owners->of_stack);
    free(owners->frame_of);
    *owners = (struct owners){0};
}

uint32_t owner_of_context(const struct owners *owners, uint32_t context)
{
    return owners->of_stack[snapshot_context_stack(owners->snapshot, context)];
}

uint32_t owner_frame(const struct owners *owners, uint32_t context)
{
    return owners->frame_of[snapshot_context_stack(owners->snapshot, context)];
}

const char *owner_name(const struct owners *owners, uint32_t owner)
{
    return owner == OWNER_UNKNOWN ? "unknown" : strings_text(owners->names, owner);
}
