/*
 * cudamem/cudamem.hpp: the library from C++17: owners that give back, a memory resource, and PyTorch's hooks for pools.
 * Header only, over the C functions; errors are exceptions here.
 */
#ifndef CUDAMEM_CUDAMEM_HPP
#define CUDAMEM_CUDAMEM_HPP

#include <cudamem/cudamem.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

struct CUstream_st;

namespace cudamem {

/* What a function of the library answered: its status and its message. */
class error : public std::runtime_error {
public:
    error(int status, const char *message) : std::runtime_error(message), status_(status) {}
    int status() const noexcept { return status_; }

private:
    int status_;
};

/* No device memory, or too little: also a std::bad_alloc, as callers of memory resources expect. */
class out_of_memory : public std::bad_alloc {
public:
    explicit out_of_memory(const char *message) : message_(std::make_shared<std::string>(message)) {}
    const char *what() const noexcept override { return message_->c_str(); }

private:
    std::shared_ptr<std::string> message_;
};

inline void check(int status, const cudamem_error &failure)
{
    if (status == CUDAMEM_ERROR_OUT_OF_MEMORY)
        throw out_of_memory(failure.message);
    if (status != CUDAMEM_OK)
        throw error(status, failure.message);
}

/* Memory on a device, in the order of a stream; throws out_of_memory or error. */
inline void *allocate(std::size_t bytes, int device = -1, void *stream = nullptr)
{
    cudamem_error failure = CUDAMEM_ERROR_INIT;
    void *pointer = nullptr;
    check(cudamem_alloc(bytes, device, stream, &pointer, &failure), failure);
    return pointer;
}

/* For std::unique_ptr and std::shared_ptr. */
struct deleter {
    void operator()(void *pointer) const noexcept { cudamem_free(pointer, nullptr); }
};
using unique_memory = std::unique_ptr<void, deleter>;

inline unique_memory make_memory(std::size_t bytes, int device = -1, void *stream = nullptr)
{
    return unique_memory(allocate(bytes, device, stream));
}

/*
 * The shape of std::pmr::memory_resource, for memory that the host must not touch: containers of the standard library
 * would, so it is no subclass.  Blocks are aligned to 512 bytes; a larger alignment throws std::bad_alloc.
 */
class memory_resource {
public:
    explicit memory_resource(int device = -1, void *stream = nullptr) noexcept : device_(device), stream_(stream) {}

    void *allocate(std::size_t bytes, std::size_t alignment = 512)
    {
        if (alignment > 512)
            throw std::bad_alloc();
        return cudamem::allocate(bytes, device_, stream_);
    }
    void deallocate(void *pointer, std::size_t = 0, std::size_t = 512) noexcept { cudamem_free(pointer, nullptr); }

    /* As RMM's resources: in the order of a stream. */
    void *allocate_async(std::size_t bytes, void *stream) { return cudamem::allocate(bytes, device_, stream); }
    void deallocate_async(void *pointer, std::size_t, void *stream)
    {
        cudamem_error failure = CUDAMEM_ERROR_INIT;
        check(cudamem_record_stream(pointer, stream, &failure), failure);
        check(cudamem_free(pointer, &failure), failure);
    }

    bool is_equal(const memory_resource &other) const noexcept
    {
        return device_ == other.device_ && stream_ == other.stream_;
    }
    int device() const noexcept { return device_; }
    void *stream() const noexcept { return stream_; }

private:
    int device_;
    void *stream_;
};
inline bool operator==(const memory_resource &a, const memory_resource &b) noexcept { return a.is_equal(b); }
inline bool operator!=(const memory_resource &a, const memory_resource &b) noexcept { return !a.is_equal(b); }

/* A private pool, and a scope of it for this thread. */
class pool {
public:
    explicit pool(const cudamem_pool_options *options = nullptr, int device = -1)
    {
        cudamem_error failure = CUDAMEM_ERROR_INIT;
        check(cudamem_pool_create(options, device, &pool_, &failure), failure);
    }
    ~pool() { cudamem_pool_destroy(pool_, nullptr); }
    pool(pool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
    pool &operator=(pool &&other) noexcept
    {
        std::swap(pool_, other.pool_);
        return *this;
    }
    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;

    cudamem_pool *get() const noexcept { return pool_; }
    cudamem_pool_id id() const noexcept { return cudamem_pool_get_id(pool_); }
    int use_count() const
    {
        cudamem_error failure = CUDAMEM_ERROR_INIT;
        int count = 0;
        check(cudamem_pool_use_count(pool_, &count, &failure), failure);
        return count;
    }

private:
    cudamem_pool *pool_ = nullptr;
};

class use_pool {
public:
    explicit use_pool(const pool &used, int device = -1) : pool_(used.get()), device_(device)
    {
        cudamem_error failure = CUDAMEM_ERROR_INIT;
        check(cudamem_pool_begin(pool_, device_, &failure), failure);
    }
    ~use_pool() { cudamem_pool_end(pool_, device_, nullptr); }
    use_pool(const use_pool &) = delete;
    use_pool &operator=(const use_pool &) = delete;

private:
    cudamem_pool *pool_;
    int device_;
};

/* All allocators kept still while it lives. */
class free_mutex_guard {
public:
    free_mutex_guard()
    {
        cudamem_error failure = CUDAMEM_ERROR_INIT;
        check(cudamem_free_mutex_lock(&failure), failure);
    }
    ~free_mutex_guard() { cudamem_free_mutex_unlock(nullptr); }
    free_mutex_guard(const free_mutex_guard &) = delete;
    free_mutex_guard &operator=(const free_mutex_guard &) = delete;
};

/*
 * PyTorch's hooks for pools, to be set on a CUDAPluggableAllocator from an extension in C++:
 *
 *     allocator->set_begin_allocate_to_pool(cudamem::torch_begin_allocate_to_pool);
 *     allocator->set_end_allocate_to_pool_fn(cudamem::torch_end_allocate_to_pool);
 *     allocator->set_release_pool(cudamem::torch_release_pool);
 */
using torch_pool_id = std::pair<unsigned long long, unsigned long long>;
using torch_filter = std::function<bool(CUstream_st *)>;

inline void torch_begin_allocate_to_pool(int device, torch_pool_id id, torch_filter filter)
{
    auto *kept = new torch_filter(std::move(filter));
    int status = cudamem_torch_begin_pool(
        device, id.first, id.second,
        [](void *self, void *stream) -> int {
            return (*static_cast<torch_filter *>(self))(static_cast<CUstream_st *>(stream)) ? 1 : 0;
        },
        [](void *self) { delete static_cast<torch_filter *>(self); }, kept);
    if (status != CUDAMEM_OK)
        throw error(status, "the pool cannot be allocated to: a scope of it is open already, or its device is not there");
}

inline void torch_end_allocate_to_pool(int device, torch_pool_id id)
{
    cudamem_torch_end_pool(device, id.first, id.second);
}

inline void torch_release_pool(int device, torch_pool_id id)
{
    cudamem_torch_release_pool(device, id.first, id.second);
}

} // namespace cudamem

#endif
