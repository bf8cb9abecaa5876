/*
 * cudamem/error.h: what went wrong, as data.
 *
 * Every function that can fail returns CUDAMEM_OK or a negative status and, if it was given a cudamem_error, fills it.
 * The caller owns the struct and sets struct_size to sizeof(cudamem_error) before the first use (CUDAMEM_ERROR_INIT
 * does), so that newer libraries never write beyond it.  Nothing prints, nothing exits.
 */
#ifndef CUDAMEM_ERROR_H
#define CUDAMEM_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cudamem_status {
    CUDAMEM_OK = 0,
    CUDAMEM_ERROR_USAGE = -2,       /* an argument makes no sense */
    CUDAMEM_ERROR_INPUT = -3,       /* an input is missing, unreadable or damaged */
    CUDAMEM_ERROR_OUTPUT = -4,      /* an output could not be written */
    CUDAMEM_ERROR_NO_MEMORY = -5,   /* memory or the input limit ran out */
    CUDAMEM_ERROR_UNSUPPORTED = -6, /* a format, version or machine that this library does not know */
    CUDAMEM_ERROR_NOT_FOUND = -7,   /* what was asked for is not there */
    CUDAMEM_ERROR_OUT_OF_MEMORY = -8, /* the device, or the limit that was set, has no room */
    CUDAMEM_ERROR_INVALID = -9,     /* a pointer or stream that is not ours, or not any more */
    CUDAMEM_ERROR_REENTERED = -10,  /* called from a callback that must not call */
    CUDAMEM_ERROR_STATE = -11,      /* not now: something else must come first */
    CUDAMEM_ERROR_DRIVER = -12,     /* the CUDA driver failed; the message has its word for it */
    CUDAMEM_ERROR_SHUT_DOWN = -13,  /* the CUDA driver has shut down: the process is ending */
};

typedef struct cudamem_error {
    size_t struct_size;
    int32_t status;
    int32_t has_offset; /* non-zero: offset says where in the (decoded) input */
    uint64_t offset;    /* bytes */
    char message[480];  /* one line, NUL-terminated */
} cudamem_error;

#define CUDAMEM_ERROR_INIT {sizeof(cudamem_error), 0, 0, 0, {0}}

#ifdef __cplusplus
}
#endif
#endif
