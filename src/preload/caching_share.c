/*
 * Interprocess handles.  The driver's own handle of a block opens the whole segment at its start: right for a block that
 * begins there.  For any other one the program gets a handle of ours: a mark and a number, which stand for the driver's
 * handle, the block's place and its size in a file of the recording's folder.  A process of the same recording opens it
 * at the right place; anybody else's driver refuses it, where the plain handle would have opened other memory.
 *
 * Once anything was exported plain memory is the driver's own (caching.c), and what was exported goes back to the driver
 * as soon as it is freed.  May use base, the C library.
 */
#include "preload/caching_internal.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARE_MARK "cudamem: block\0" /* 16 bytes with the last NUL */
#define SHARE_NAME "handle"

struct token { /* what stands in a handle of ours */
    char mark[16];
    int64_t pid;
    uint64_t number;
};
_Static_assert(sizeof(struct token) <= sizeof(CUipcMemHandle), "it fits a handle");

struct share { /* what stands in its file */
    CUipcMemHandle handle;
    uint64_t offset, size;
};

struct import {
    uint64_t base; /* what the driver opened */
    uint64_t start, size;
};

static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct import *imports;
static size_t import_count, import_capacity;
static atomic_size_t import_any; /* nothing to look for without */
static atomic_ullong shares;

static bool path_of(const struct token *token, char *path, size_t size)
{
    const char *folder = secure_getenv("CUDAMEM_RING_FOLDER");
    int length = snprintf(path, size, "%s/" SHARE_NAME ".%lld.%llu", folder ? folder : "", (long long)token->pid,
                          (unsigned long long)token->number);
    return folder && *folder && length > 0 && (size_t)length < size;
}

static bool write_share(const struct token *token, const struct share *share)
{
    char path[1024];
    if (!path_of(token, path, sizeof(path)))
        return false;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, share, sizeof(*share)) == (ssize_t)sizeof(*share);
    if (fd >= 0)
        close(fd);
    return written;
}

static bool read_share(const struct token *token, struct share *share)
{
    char path[1024];
    int fd = path_of(token, path, sizeof(path)) ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    bool whole = fd >= 0 && read(fd, share, sizeof(*share)) == (ssize_t)sizeof(*share);
    if (fd >= 0)
        close(fd);
    return whole;
}

static CUresult make_token(CUipcMemHandle *handle, const CUipcMemHandle *real, const struct caching_block *block)
{
    struct token token = {.mark = SHARE_MARK, .pid = getpid(), .number = atomic_fetch_add(&shares, 1) + 1};
    const struct share share = {*real, block->address - block->segment, block->requested};
    int saved = errno;
    bool written = write_share(&token, &share);
    errno = saved;
    if (!written)
        return CUDA_ERROR_NOT_SUPPORTED;
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &token, sizeof(token));
    return CUDA_SUCCESS;
}

bool caching_export(CUipcMemHandle *handle, CUdeviceptr address, CUresult *result)
{
    struct caching_block block;
    CUipcMemHandle real;
    if (!handle)
        return false;
    enum caching_place place = caching_find(address, &block);
    if (place == CACHING_ELSEWHERE)
        return false;
    *result = CUDA_ERROR_INVALID_VALUE; /* as for memory of a pool, or nobody's */
    if (place == CACHING_IN_NO_BLOCK || block.async)
        return true;
    atomic_store(&caching_exports, true);
    *result = driver.cuIpcGetMemHandle(&real, address);
    if (*result != CUDA_SUCCESS)
        return true;
    blocks_exported(block.address);
    if (block.address == block.segment)
        memcpy(handle, &real, sizeof(real));
    else
        *result = make_token(handle, &real, &block);
    return true;
}

static void hold(void)
{
    caching_busy++;
    pthread_mutex_lock(&imports_lock);
}

static void let_go(void)
{
    pthread_mutex_unlock(&imports_lock);
    caching_busy--;
}

void imports_hold(bool held)
{
    if (held)
        hold();
    else
        let_go();
}

static bool note_import(uint64_t base, uint64_t start, uint64_t size)
{
    hold();
    bool noted = !array_reserve(&imports, &import_capacity, import_count + 1, sizeof(*imports));
    if (noted)
        imports[import_count++] = (struct import){base, start, size};
    atomic_store(&import_any, import_count);
    let_go();
    return noted;
}

bool caching_import(CUdeviceptr *address, const CUipcMemHandle *handle, unsigned flags, uint64_t *size, CUresult *result)
{
    struct token token;
    struct share share;
    CUdeviceptr base = 0;
    memcpy(&token, handle, sizeof(token));
    if (!address || caching_busy || memcmp(token.mark, SHARE_MARK, sizeof(token.mark)) != 0)
        return false;
    int saved = errno;
    bool read = read_share(&token, &share);
    errno = saved;
    if (!read)
        return false;
    *result = driver.cuIpcOpenMemHandle_v2 ? driver.cuIpcOpenMemHandle_v2(&base, share.handle, flags)
                                           : driver.cuIpcOpenMemHandle(&base, share.handle, flags);
    if (*result != CUDA_SUCCESS)
        return true;
    if (!note_import(base, base + share.offset, share.size)) {
        driver.cuIpcCloseMemHandle(base);
        *result = CUDA_ERROR_OUT_OF_MEMORY;
        return true;
    }
    *address = base + share.offset;
    *size = share.size;
    return true;
}

static struct import *import_holding(uint64_t address)
{
    for (size_t i = 0; i < import_count; i++)
        if (address - imports[i].start < imports[i].size)
            return &imports[i];
    return NULL;
}

bool caching_imported(CUdeviceptr address, uint64_t *start, uint64_t *size)
{
    if (!atomic_load_explicit(&import_any, memory_order_relaxed) || caching_busy)
        return false;
    hold();
    const struct import *found = import_holding(address);
    if (found) {
        *start = found->start;
        *size = found->size;
    }
    let_go();
    return found != NULL;
}

CUdeviceptr caching_import_ends(CUdeviceptr address)
{
    CUdeviceptr base = address;
    if (!atomic_load_explicit(&import_any, memory_order_relaxed) || caching_busy)
        return base;
    hold();
    struct import *found = import_holding(address);
    if (found && found->start == address) {
        base = found->base;
        *found = imports[--import_count];
    }
    atomic_store(&import_any, import_count);
    let_go();
    return base;
}
