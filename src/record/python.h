/*
 * Python's frames, without Python's help: the calling thread's interpreter frames stand still while it is in our C code,
 * whoever has the interpreter's lock, and are read by the offsets of the version that was found.
 *
 * python_find.c looks for the interpreter among the loaded objects, python_layout.c knows the versions, python_walk.c
 * reads frames and code objects, python_code.c puts code objects into the file, python.c is the capture.  Nothing of
 * Python's is called but PyGILState_GetThisThreadState, which reads a thread-local.  Not for others.
 */
#ifndef RECORD_PYTHON_H
#define RECORD_PYTHON_H

#include "record/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an interpreter exports. */
struct python_symbols {
    void *(*thread_state)(void); /* NULL: there is no Python here */
    uint64_t runtime;            /* _PyRuntime */
    uint64_t version;            /* Py_Version, from 3.11; as PY_VERSION_HEX; 0: not exported */
    uint64_t code_type;          /* PyCode_Type */
    uint64_t loop, loop_size;    /* _PyEval_EvalFrameDefault */
    bool is_3_9, is_3_10;        /* exports what came with it */
    bool counts_references;      /* a debug build */
    bool is_lasting;             /* the program itself or a library that it is linked with: is never unloaded */
};

/* Among the objects that are loaded now. */
void python_find(struct python_symbols *symbols);

#define PYTHON_NOT_THERE UINT32_MAX

/* Where things lie in this interpreter's objects, in bytes; PYTHON_NOT_THERE: this version lacks it. */
struct python_layout {
    uint32_t version;
    uint32_t thread_frame;    /* in the thread state: the frame, or ... */
    uint32_t cframe_frame;    /* ... what holds it there */
    uint32_t previous, code, instruction, owner, entry; /* in a frame */
    uint32_t instruction_unit; /* it is an index of so many bytes; 0: it is an address */
    uint32_t owner_c;         /* owners from here on are no Python functions */
    uint64_t code_mask;       /* of the code's address; the other bits are a tag */
    uint32_t first_line, name, file, lines, first_traceable, bytes; /* in a code object */
    uint32_t code_version;    /* there, too: a number that no two have, 0 when they ran out */
    uint32_t ascii_size, compact_size; /* of texts */
    uint32_t text_kind;       /* bit of their state where their kind begins */
    uint32_t finalizing, interpreters; /* in the runtime */
    uint32_t interpreter_threads, thread_next, thread_number; /* where follows_interpreters is false */
    uint64_t code_type;
    uint64_t runtime;
    bool follows_interpreters; /* the thread state asked for is that of the interpreter that runs */
};

#define PYTHON_TYPE 8u          /* in every object */
#define PYTHON_SIZE 16u         /* in a text and in bytes */
#define PYTHON_TEXT_HASH 24u    /* -1: not yet */
#define PYTHON_TEXT_STATE 32u
#define PYTHON_BYTES_DATA 32u
#define PYTHON_CODE_UNIT 2u

/* RING_PYTHON_RECORDED, or why this interpreter's frames cannot be read. */
enum ring_python_state python_layout_of(const struct python_symbols *symbols, struct python_layout *layout);

/* A frame as it was walked over. */
struct python_frame {
    uint64_t code;        /* address */
    uint64_t identity;    /* of the code object: its address and what it says of itself, mixed */
    int32_t instruction;  /* byte offset, -1: not begun */
    uint32_t flags;       /* enum ring_python_flag */
};

/* What a thread remembers of code objects: the identity of one that says the same as before is not worked out again. */
#define PYTHON_CODES_BITS 9
struct python_known_code {
    uint64_t code, name, file, lines, contents, identity;
    int32_t first_line;
};

struct python_walk {
    struct python_frame *frames; /* innermost first */
    struct python_known_code *codes; /* 1 << PYTHON_CODES_BITS of them; may be NULL */
    uint32_t count, limit;
    bool failed;          /* memory that cannot be read, or is not what it should be */
};

/* The frames of a thread state.  checked: through the kernel, so that no address can do harm. */
void python_walk(const struct python_layout *layout, uint64_t thread, struct python_walk *walk, bool checked);

/* Several interpreters in one thread, before 3.12: the state asked for is not that of the one that runs. */
bool python_is_ambiguous(const struct python_layout *layout, uint64_t thread);

/* Memory of this process that may not be there; false: it is not. */
bool python_copy(void *to, uint64_t from, size_t size);

/* The texts of a code object; false: it makes no sense. */
struct python_text {
    char *bytes;
    size_t length, capacity;
};
struct python_code_texts {
    struct python_text name, file, lines;
    int32_t first_line;
};
bool python_read_code(const struct python_layout *layout, uint64_t code, struct python_code_texts *texts);

/* Its number in the file's table, -1: no room.  Under the intern lock. */
int64_t python_code_number(const struct python_layout *layout, const struct python_frame *frame);
void python_code_forget(void);

#endif
