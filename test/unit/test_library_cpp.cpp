/* cudamem.hpp from a C++ program: owners, the memory resource, pools, and PyTorch's hooks with a function object. */
#include <cudamem/cudamem.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static int failures;
static void expect(bool holds, const char *what)
{
    if (!holds) {
        std::fprintf(stderr, "not so: %s\n", what);
        failures++;
    }
}
#define EXPECT(condition) expect((condition), #condition)

static std::uint64_t allocated()
{
    std::uint64_t bytes = 0;
    EXPECT(cudamem_memory_allocated(0, &bytes, nullptr) == CUDAMEM_OK);
    return bytes;
}

static void owners_give_back()
{
    {
        cudamem::unique_memory memory = cudamem::make_memory(1000, 0);
        EXPECT(memory.get() != nullptr);
        EXPECT(allocated() == 1024);
        std::shared_ptr<void> shared(cudamem::allocate(2000, 0), cudamem::deleter());
        EXPECT(allocated() == 1024 + 2048);
    }
    EXPECT(allocated() == 0);
}

static void failures_are_exceptions()
{
    bool caught = false;
    try {
        cudamem::allocate(std::size_t(1) << 50, 0);
    } catch (const std::bad_alloc &failure) {
        caught = std::string(failure.what()).find("out of memory") != std::string::npos;
    }
    EXPECT(caught);
    caught = false;
    try {
        cudamem::allocate(1, 99);
    } catch (const cudamem::error &failure) {
        caught = failure.status() == CUDAMEM_ERROR_NOT_FOUND && *failure.what();
    }
    EXPECT(caught);
}

static void a_resource_allocates_and_takes_back()
{
    cudamem::memory_resource resource(0), same(0), other(0, reinterpret_cast<void *>(2));
    void *pointer = resource.allocate(5000, 256);
    EXPECT(allocated() == 5120);
    resource.deallocate(pointer, 5000, 256);
    pointer = resource.allocate_async(5000, nullptr);
    resource.deallocate_async(pointer, 5000, nullptr);
    EXPECT(allocated() == 0);
    EXPECT(resource == same && resource != other);
    bool caught = false;
    try {
        resource.allocate(1, 1024);
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    EXPECT(caught);
}

static void a_pool_is_in_force_for_a_scope()
{
    cudamem::pool pool;
    EXPECT(pool.use_count() == 1);
    EXPECT(pool.id().second > 0);
    {
        cudamem::use_pool scope(pool);
        EXPECT(pool.use_count() == 2);
        cudamem::make_memory(1000);
    }
    EXPECT(pool.use_count() == 1);
    cudamem::pool moved = std::move(pool);
    EXPECT(pool.get() == nullptr && moved.get() != nullptr);
    cudamem::free_mutex_guard still;
    cudamem::make_memory(1000);
}

static void hooks_take_a_function_object()
{
    int asked = 0;
    const cudamem::torch_pool_id id(0, 424242);
    cudamem::torch_begin_allocate_to_pool(0, id, [&asked](CUstream_st *stream) {
        asked++;
        return stream == nullptr;
    });
    void *pointer = cudamem_torch_alloc(1000, 0, nullptr);
    EXPECT(asked == 1);
    bool caught = false;
    try {
        cudamem::torch_begin_allocate_to_pool(0, id, [](CUstream_st *) { return true; });
    } catch (const cudamem::error &failure) {
        caught = failure.status() == CUDAMEM_ERROR_STATE;
    }
    EXPECT(caught);
    cudamem::torch_end_allocate_to_pool(0, id);
    cudamem_torch_free(pointer, 1000, 0, nullptr);
    EXPECT(asked == 1);
    cudamem::torch_release_pool(0, id);
    EXPECT(cudamem_empty_cache(nullptr) == CUDAMEM_OK);
    std::uint64_t reserved = 1;
    EXPECT(cudamem_memory_reserved(0, &reserved, nullptr) == CUDAMEM_OK && reserved == 0);
}

int main()
{
    owners_give_back();
    failures_are_exceptions();
    a_resource_allocates_and_takes_back();
    a_pool_is_in_force_for_a_scope();
    hooks_take_a_function_object();
    return failures != 0;
}
