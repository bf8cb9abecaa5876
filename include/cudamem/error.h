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
