/*
 * The versions: where an interpreter keeps what is read of it.  Up to 3.12 by tables that hold for a whole minor version,
 * whose structures do not change after its first release; from 3.13 by what the interpreter itself tells debuggers
 * (_Py_DebugOffsets, at the start of _PyRuntime), whose order of words is a table here.  Free-threaded and debug builds
 * lay out things differently and are left alone, as is every version that is not in a table.
 */
#include "record/python.h"

#include <string.h>

#define NONE PYTHON_NOT_THERE
#define MINOR(version) ((version) >> 16)
#define HEX(minor) (0x03000000u | (uint32_t)(minor) << 16)
#define RELEASED 0xf0u       /* the lowest byte of a version: a release */
#define CANDIDATE 0xc0u      /* from here on structures stand still */
#define OWNER_BYTE_C 3u      /* FRAME_OWNED_BY_CSTACK up to 3.13, FRAME_OWNED_BY_INTERPRETER from 3.14 */

static const struct python_layout layouts[] = {
    {.version = HEX(9), .thread_frame = 24, .cframe_frame = NONE, .previous = 24, .code = 32, .instruction = 104,
     .owner = NONE, .entry = NONE, .instruction_unit = 1, .owner_c = NONE, .first_line = 40, .name = 112, .file = 104,
     .lines = 120, .first_traceable = NONE, .bytes = NONE, .code_version = NONE, .ascii_size = 48, .compact_size = 72, .text_kind = 2, .finalizing = 16,
     .interpreters = 32, .interpreter_threads = 8, .thread_next = 8, .thread_number = 176},
    {.version = HEX(10), .thread_frame = 24, .cframe_frame = NONE, .previous = 24, .code = 32, .instruction = 96,
     .owner = NONE, .entry = NONE, .instruction_unit = PYTHON_CODE_UNIT, .owner_c = NONE, .first_line = 40, .name = 112,
     .file = 104, .lines = 120, .first_traceable = NONE, .bytes = NONE, .code_version = NONE, .ascii_size = 48, .compact_size = 72, .text_kind = 2,
     .finalizing = 16, .interpreters = 32, .interpreter_threads = 8, .thread_next = 8, .thread_number = 176},
    {.version = HEX(11), .thread_frame = 56, .cframe_frame = 8, .previous = 48, .code = 32, .instruction = 56,
     .owner = 69, .entry = 68, .owner_c = NONE, .first_line = 72, .name = 120, .file = 112, .lines = 136,
     .first_traceable = 168, .bytes = 184, .code_version = NONE, .ascii_size = 48, .compact_size = 72, .text_kind = 2, .finalizing = 24, .interpreters = 40,
     .interpreter_threads = 16, .thread_next = 8, .thread_number = 152},
    {.version = HEX(12), .thread_frame = 56, .cframe_frame = 0, .previous = 8, .code = 0, .instruction = 56, .owner = 70,
     .entry = NONE, .owner_c = OWNER_BYTE_C, .first_line = 68, .name = 120, .file = 112, .lines = 136,
     .first_traceable = 176, .bytes = 192, .code_version = 92, .ascii_size = 40, .compact_size = 56, .text_kind = 2, .finalizing = 24, .interpreters = 40,
     .interpreter_threads = 72, .thread_next = 8, .thread_number = 136, .follows_interpreters = true},
};

/* Words of _Py_DebugOffsets: its start is the same everywhere, the parts move with what was added before them. */
enum { WORD_COOKIE, WORD_VERSION, WORD_FREE_THREADED, WORD_RUNTIME };
enum { RUNTIME_SIZE, RUNTIME_FINALIZING, RUNTIME_INTERPRETERS };
enum { INTERPRETER_SIZE, INTERPRETER_ID, INTERPRETER_NEXT, INTERPRETER_THREADS };
enum { THREAD_SIZE, THREAD_PREV, THREAD_NEXT, THREAD_INTERPRETER, THREAD_FRAME, THREAD_NUMBER };
enum { FRAME_SIZE, FRAME_PREVIOUS, FRAME_EXECUTABLE, FRAME_INSTRUCTION, FRAME_LOCALS, FRAME_OWNER };
enum { CODE_SIZE, CODE_FILE, CODE_NAME, CODE_QUALIFIED, CODE_LINES, CODE_FIRST_LINE, CODE_BYTES = 9 };
enum { OBJECT_SIZE, OBJECT_TYPE };
enum { BYTES_SIZE, BYTES_LENGTH, BYTES_DATA };
enum { TEXT_SIZE, TEXT_STATE, TEXT_LENGTH, TEXT_ASCII_SIZE };

static const struct words {
    uint32_t version;
    unsigned interpreter, thread, frame, code, object, bytes, text, end;
    uint32_t text_kind; /* as in struct python_layout */
    uint64_t code_mask;
} words[] = {
    {.version = HEX(13), .interpreter = 6, .thread = 19, .frame = 28, .code = 34, .object = 44, .bytes = 64, .text = 67,
     .end = 71, .text_kind = 2, .code_mask = ~UINT64_C(0)},
    {.version = HEX(14), .interpreter = 6, .thread = 22, .frame = 31, .code = 39, .object = 50, .bytes = 74, .text = 77,
     .end = 81, .text_kind = 16, .code_mask = ~UINT64_C(7)},
};
#define WORDS_MOST 81

/* The parts stand where the table has them: what every build has alike is as it must be. */
static bool is_in_place(const uint64_t *at, const struct words *place)
{
    const uint64_t *frame = at + place->frame, *code = at + place->code;
    if (at[place->object + OBJECT_SIZE] != 16 || at[place->object + OBJECT_TYPE] != PYTHON_TYPE ||
        at[place->bytes + BYTES_LENGTH] != PYTHON_SIZE || at[place->bytes + BYTES_DATA] != PYTHON_BYTES_DATA ||
        at[place->text + TEXT_STATE] != PYTHON_TEXT_STATE || at[place->text + TEXT_LENGTH] != PYTHON_SIZE ||
        at[place->text + TEXT_ASCII_SIZE] != 40)
        return false;
    for (unsigned i = FRAME_PREVIOUS; i <= FRAME_OWNER; i++)
        if (frame[i] >= frame[FRAME_SIZE] || frame[FRAME_SIZE] > 1024)
            return false;
    for (unsigned i = CODE_FILE; i <= CODE_BYTES; i++)
        if (code[i] >= code[CODE_SIZE] || code[CODE_SIZE] > 4096)
            return false;
    return at[place->thread + THREAD_FRAME] < at[place->thread + THREAD_SIZE] && at[place->thread + THREAD_SIZE] < 65536 &&
           at[WORD_RUNTIME + RUNTIME_FINALIZING] < at[WORD_RUNTIME + RUNTIME_SIZE] &&
           at[WORD_RUNTIME + RUNTIME_SIZE] < UINT32_MAX && code[CODE_BYTES] >= 16;
}

/* Six numbers stand behind the first line, the version the last of them, then two pointers: if that is the distance. */
static uint32_t code_version_of(const uint64_t *code)
{
    bool is_as_known = code[CODE_FILE] == code[CODE_FIRST_LINE] + 7 * sizeof(int32_t) + 2 * sizeof(void *);
    return is_as_known ? (uint32_t)(code[CODE_FIRST_LINE] + 6 * sizeof(int32_t)) : NONE;
}

static void take_words(const uint64_t *at, const struct words *place, struct python_layout *layout)
{
    const uint64_t *frame = at + place->frame, *code = at + place->code;
    *layout = (struct python_layout){
        .thread_frame = (uint32_t)at[place->thread + THREAD_FRAME],
        .cframe_frame = NONE,
        .previous = (uint32_t)frame[FRAME_PREVIOUS],
        .code = (uint32_t)frame[FRAME_EXECUTABLE],
        .instruction = (uint32_t)frame[FRAME_INSTRUCTION],
        .owner = (uint32_t)frame[FRAME_OWNER],
        .entry = NONE,
        .owner_c = OWNER_BYTE_C,
        .code_mask = place->code_mask,
        .first_line = (uint32_t)code[CODE_FIRST_LINE],
        .name = (uint32_t)code[CODE_NAME],
        .file = (uint32_t)code[CODE_FILE],
        .lines = (uint32_t)code[CODE_LINES],
        .first_traceable = (uint32_t)code[CODE_BYTES] - 16, /* it and one pointer stand before the code */
        .bytes = (uint32_t)code[CODE_BYTES],
        .code_version = code_version_of(code),
        .ascii_size = 40,
        .compact_size = 56,
        .text_kind = place->text_kind,
        .finalizing = (uint32_t)at[WORD_RUNTIME + RUNTIME_FINALIZING],
        .interpreters = NONE,
        .follows_interpreters = true,
    };
}

static enum ring_python_state by_debug_offsets(const struct python_symbols *symbols, uint32_t version,
                                               struct python_layout *layout)
{
    uint64_t at[WORDS_MOST];
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (MINOR(version) != MINOR(words[i].version))
            continue;
        if (!python_copy(at, symbols->runtime, words[i].end * sizeof(*at)) || memcmp(at, "xdebugpy", 8) ||
            at[WORD_VERSION] != version)
            return RING_PYTHON_UNKNOWN_VERSION;
        if (at[WORD_FREE_THREADED])
            return RING_PYTHON_FREE_THREADED;
        if (!is_in_place(at, &words[i]))
            return RING_PYTHON_UNKNOWN_VERSION;
        take_words(at, &words[i], layout);
        return RING_PYTHON_RECORDED;
    }
    return RING_PYTHON_UNKNOWN_VERSION;
}

/* Before 3.11 nothing tells the version but what there is. */
static uint32_t version_of(const struct python_symbols *symbols)
{
    if (symbols->version)
        return (uint32_t)symbols->version;
    return symbols->is_3_10 ? HEX(10) | RELEASED : symbols->is_3_9 ? HEX(9) | RELEASED : 0;
}

static enum ring_python_state choose(const struct python_symbols *symbols, uint32_t version,
                                     struct python_layout *layout)
{
    if (symbols->counts_references)
        return RING_PYTHON_DEBUG_BUILD;
    if (!symbols->runtime || !symbols->code_type || (version & 0xff) < CANDIDATE)
        return RING_PYTHON_UNKNOWN_VERSION;
    if (version >= HEX(13))
        return by_debug_offsets(symbols, version, layout);
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        if (MINOR(version) != MINOR(layouts[i].version))
            continue;
        *layout = layouts[i];
        layout->code_mask = ~UINT64_C(0);
        return RING_PYTHON_RECORDED;
    }
    return RING_PYTHON_UNKNOWN_VERSION;
}

enum ring_python_state python_layout_of(const struct python_symbols *symbols, struct python_layout *layout)
{
    uint32_t version = version_of(symbols);
    *layout = (struct python_layout){0};
    enum ring_python_state state = choose(symbols, version, layout);
    layout->version = version;
    layout->code_type = symbols->code_type;
    layout->runtime = symbols->runtime;
    return state;
}
