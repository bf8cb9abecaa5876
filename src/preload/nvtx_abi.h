/*
 * NVTX's binary interface to a tool, as far as we touch it, in our own words: a program's NVTX header opens the library
 * that NVTX_INJECTION64_PATH names, calls InitializeInjectionNvtx2 with a function that hands out tables, and from then
 * on calls through pointers in them, those that the tool set.  Names end in ours; numbers are the interface's.
 */
#ifndef PRELOAD_NVTX_ABI_H
#define PRELOAD_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define NVTX_TABLE_CALLBACKS 1u /* what to ask the given function for */
#define NVTX_MODULE_CORE 1
#define NVTX_MODULE_DOMAINS 5
#define NVTX_UNTRACKED (-2)     /* answer of a push or pop: as if nobody listened */

typedef void (*nvtx_pointer)(void);
typedef const void *(*nvtx_get_table)(uint32_t table);

struct nvtx_callbacks {
    size_t size; /* of this structure */
    int (*get_module)(int module, nvtx_pointer ***table, unsigned *size);
};

enum nvtx_core {
    NVTX_MARK_EX = 1, NVTX_MARK_A, NVTX_MARK_W, NVTX_START_EX, NVTX_START_A, NVTX_START_W, NVTX_END, NVTX_PUSH_EX,
    NVTX_PUSH_A, NVTX_PUSH_W, NVTX_POP,
};
enum nvtx_domains {
    NVTX_DOMAIN_MARK_EX = 1, NVTX_DOMAIN_START_EX, NVTX_DOMAIN_END, NVTX_DOMAIN_PUSH_EX, NVTX_DOMAIN_POP,
    NVTX_REGISTER_A = 10, NVTX_REGISTER_W, NVTX_DOMAIN_CREATE_A, NVTX_DOMAIN_CREATE_W, NVTX_DOMAIN_DESTROY,
};

enum nvtx_message { NVTX_MESSAGE_NONE, NVTX_MESSAGE_A, NVTX_MESSAGE_W, NVTX_MESSAGE_REGISTERED };

struct nvtx_attributes {
    uint16_t version, size; /* size: of this structure, in the program's version */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type; /* enum nvtx_message */
    union {
        const char *a;
        const wchar_t *w;
        const void *registered;
    } message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48, "as NVTX has it");

#endif
