/* An interpreter that is none: what CPython 3.14 exports and keeps in memory, as far as the recorder reads it, laid out in
 * a way of its own so that only the offsets that it tells debuggers lead to it.  The program that includes this exports
 * the symbols and is found as an interpreter. */
#ifndef TEST_FAKE_PYTHON_H
#define TEST_FAKE_PYTHON_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default"), used))

struct fake_object {
    uint64_t references;
    const void *type;
};

struct fake_text { /* and bytes: their data begin at 32 */
    struct fake_object object;
    uint64_t length;
    uint64_t hash;
    uint32_t state;
    uint32_t spare;
    union {
        char ascii[64];
        struct {
            uint64_t utf8_length;
            char *utf8;
            char data[48];
        } other;
        struct {
            uint64_t utf8_length;
            char *utf8;
            const void *data;
        } apart;
    } as;
};

struct fake_bytes {
    struct fake_object object;
    uint64_t length, hash;
    unsigned char data[64];
};

struct fake_code {
    struct fake_object object;
    uint64_t elsewhere[3];
    struct fake_bytes *lines;
    int32_t spare, first_line, counts[5];
    uint32_t version;
    const void *locals[2];
    struct fake_text *file, *name, *qualified;
    int32_t first_traceable, spare2;
    void *extra;
    uint16_t bytes[64];
};

struct fake_frame {
    uint64_t elsewhere;
    uintptr_t executable; /* with a tag */
    uint16_t *instruction;
    struct fake_frame *previous;
    char spare[5], owner;
};
enum { OWNED_BY_THREAD, OWNED_BY_GENERATOR, OWNED_BY_FRAME, OWNED_BY_INTERPRETER, OWNED_BY_CSTACK };

struct fake_thread {
    uint64_t elsewhere[5];
    struct fake_frame *frame;
};

EXPORTED const char PyCode_Type[64];
EXPORTED unsigned long Py_Version = 0x030e00f0;
EXPORTED uint64_t _PyRuntime[512];
#define FAKE_FINALIZING 500 /* word of the runtime */

static struct fake_thread *fake_current;
EXPORTED void *PyGILState_GetThisThreadState(void);
void *PyGILState_GetThisThreadState(void)
{
    return fake_current;
}

/* The interpreter's loop: what it runs calls back. */
EXPORTED int _PyEval_EvalFrameDefault(int (*call)(void *), void *context);
__attribute__((noinline)) int _PyEval_EvalFrameDefault(int (*call)(void *), void *context)
{
    int result = call(context);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return result;
}

#define AT(type, field) ((uint64_t)offsetof(struct type, field))

static void fake_offsets_of_3_14(void)
{
    const uint64_t words[] = {
        0, Py_Version, 0,                             /* cookie, version, free-threaded */
        sizeof(_PyRuntime), FAKE_FINALIZING * 8, 8,   /* runtime: size, finalizing, interpreters */
        64, 0, 8, 16, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* interpreter */
        sizeof(struct fake_thread), 0, 8, 16, AT(fake_thread, frame), 0, 0, 0, 0,
        sizeof(struct fake_frame), AT(fake_frame, previous), AT(fake_frame, executable), AT(fake_frame, instruction), 0,
        AT(fake_frame, owner), 0, 0,
        sizeof(struct fake_code), AT(fake_code, file), AT(fake_code, name), AT(fake_code, qualified),
        AT(fake_code, lines), AT(fake_code, first_line), 0, 0, 0, AT(fake_code, bytes), 0,
        sizeof(struct fake_object), AT(fake_object, type),
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* type, tuple, list, set, dict, float, long */
        sizeof(struct fake_bytes), AT(fake_bytes, length), AT(fake_bytes, data),
        64, AT(fake_text, state), AT(fake_text, length), AT(fake_text, as),
    };
    memcpy(_PyRuntime, words, sizeof(words));
    memcpy(_PyRuntime, "xdebugpy", 8);
}

/* Zeroed and never given back; a list has it all, so that nothing is called a leak. */
static void *fake_memory(size_t size)
{
    static struct fake_block {
        struct fake_block *next;
        uint64_t spare;
    } *blocks;
    struct fake_block *block = calloc(1, sizeof(*block) + size);
    if (!block)
        abort();
    block->next = blocks;
    blocks = block;
    return block + 1;
}

/* As from 3.14: behind 16 bits that say whether it is interned. */
#define STATE_OF(kind, compact, ascii) (3u | (uint32_t)(kind) << 16 | (uint32_t)(compact) << 19 | (uint32_t)(ascii) << 20)

static struct fake_text *fake_ascii(const char *text)
{
    struct fake_text *made = fake_memory(sizeof(*made));
    made->length = strlen(text); /* short ones, as close together as an interpreter's own */
    made->state = STATE_OF(1, 1, 1);
    memcpy(made->as.ascii, text, made->length);
    return made;
}

__attribute__((unused)) static struct fake_text *fake_wide(const void *characters, size_t count, unsigned kind)
{
    char *memory = fake_memory(sizeof(struct fake_text) + count * kind);
    struct fake_text *made = (void *)memory;
    made->length = count;
    made->state = STATE_OF(kind, 1, 0);
    memcpy(memory + offsetof(struct fake_text, as.other.data), characters, count * kind);
    return made;
}

static uint32_t fake_next_version = 1; /* of code objects; 0: they ran out */

/* A function whose n-th instruction is on line first_line + n, for `lines` of them. */
static struct fake_code *fake_code(const char *name, const char *file, int first_line, int lines)
{
    struct fake_code *code = fake_memory(sizeof(*code));
    code->object.type = PyCode_Type;
    code->name = fake_ascii(name);
    code->qualified = fake_ascii("Qualified.name");
    code->file = fake_ascii(file);
    code->first_line = first_line;
    code->version = fake_next_version;
    fake_next_version += fake_next_version != 0;
    code->lines = fake_memory(sizeof(*code->lines));
    for (int i = 0; i < lines; i++) {
        code->lines->data[code->lines->length++] = (unsigned char)(0x80 | (i ? 11 : 10) << 3);
        code->lines->data[code->lines->length++] = 0;
        code->lines->data[code->lines->length++] = 0;
    }
    return code;
}

/* A frame in `code` at its n-th instruction, called from `previous`. */
static struct fake_frame *fake_frame(struct fake_code *code, int n, struct fake_frame *previous)
{
    struct fake_frame *frame = fake_memory(sizeof(*frame));
    frame->executable = (uintptr_t)code | 1;
    frame->instruction = code->bytes + n;
    frame->previous = previous;
    return frame;
}

/* The frame by which C enters the interpreter. */
static struct fake_frame *fake_entry(struct fake_frame *previous)
{
    struct fake_frame *frame = fake_memory(sizeof(*frame));
    frame->owner = OWNED_BY_INTERPRETER;
    frame->previous = previous;
    frame->executable = 1;
    return frame;
}

#endif
