/*
 * The frames of a thread state, and what a code object says of itself.  Reads memory only: of frames directly once the
 * offsets have proved right (python.c), else, and for code objects always, through the kernel, which refuses addresses
 * that are not there instead of raising a signal.
 */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define NAME_LONGEST 1024u  /* characters */
#define FILE_LONGEST 4096u

/* Where system calls are filtered, /proc does the same. */
static bool copy_by_file(void *to, uint64_t from, size_t size)
{
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool copied = pread(fd, to, size, (off_t)from) == (ssize_t)size;
    close(fd);
    return copied;
}

bool python_copy(void *to, uint64_t from, size_t size)
{
    struct iovec here = {to, size}, there = {(void *)(uintptr_t)from, size};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size)
        return true;
    return (errno == EPERM || errno == ENOSYS) && copy_by_file(to, from, size);
}

/* --- frames ----------------------------------------------------------------------------------------------------------- */

#define INLINE static inline __attribute__((always_inline))

struct reading {
    const struct python_layout *layout;
    struct python_walk *walk;
    bool checked; /* a constant in each of the two walks below */
};

INLINE void take(const struct reading *reading, uint64_t at, void *to, size_t size)
{
    if (!reading->checked) {
        memcpy(to, (const void *)(uintptr_t)at, size);
    } else if (!python_copy(to, at, size)) {
        memset(to, 0, size);
        reading->walk->failed = true;
    }
}

INLINE uint64_t word(const struct reading *reading, uint64_t at)
{
    uint64_t value;
    take(reading, at, &value, sizeof(value));
    return value;
}

INLINE int32_t number(const struct reading *reading, uint64_t at)
{
    int32_t value;
    take(reading, at, &value, sizeof(value));
    return value;
}

INLINE uint8_t byte(const struct reading *reading, uint64_t at)
{
    uint8_t value;
    take(reading, at, &value, sizeof(value));
    return value;
}

/* The last bytes of a text's or of bytes' data, as the aligned word that holds the last one, all of it in the object. */
INLINE uint64_t tail_of(const struct reading *reading, uint64_t data, uint64_t length)
{
    return length && length < INT32_MAX ? word(reading, data + ((length - 1) & ~UINT64_C(7))) : 0;
}

INLINE uint64_t file_contents(const struct reading *reading, uint64_t file)
{
    const uint32_t compact_ascii = UINT32_C(3) << 3;
    uint64_t length = word(reading, file + PYTHON_SIZE);
    uint32_t state = (uint32_t)number(reading, file + PYTHON_TEXT_STATE) >> reading->layout->text_kind;
    if ((state & compact_ascii) != compact_ascii)
        return length;
    return length ^ tail_of(reading, file + reading->layout->ascii_size, length);
}

/* What a code object says of itself; no name: it makes no sense.  Names are hashed when they are made, for they are
 * interned; texts and tables of the same length mostly differ at the end. */
INLINE void read_code(const struct reading *reading, uint64_t code, struct python_known_code *said)
{
    const struct python_layout *layout = reading->layout;
    said->code = code;
    said->name = word(reading, code + layout->name);
    said->file = word(reading, code + layout->file);
    said->lines = word(reading, code + layout->lines);
    said->first_line = number(reading, code + layout->first_line);
    if (!said->name || !said->file || !said->lines) {
        said->name = said->contents = 0;
        return;
    }
    uint64_t lines = word(reading, said->lines + PYTHON_SIZE);
    said->contents = word(reading, said->name + PYTHON_TEXT_HASH);
    said->contents = said->contents * UINT64_C(0xc2b2ae3d27d4eb4f) + word(reading, said->name + PYTHON_SIZE);
    said->contents = said->contents * UINT64_C(0x9e3779b97f4a7c15) + file_contents(reading, said->file);
    said->contents = said->contents * UINT64_C(0xd6e8feb86659fd93) + lines +
                     tail_of(reading, said->lines + PYTHON_BYTES_DATA, lines);
}

/* By what it says of itself. */
INLINE uint64_t identity_by_contents(const struct reading *reading, uint64_t code)
{
    struct python_known_code said, none, *known = &none;
    read_code(reading, code, &said);
    if (!said.name)
        return 0;
    if (reading->walk->codes) {
        known = &reading->walk->codes[(code >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PYTHON_CODES_BITS)];
        if (known->code == code && known->name == said.name && known->file == said.file && known->lines == said.lines &&
            known->contents == said.contents && known->first_line == said.first_line)
            return known->identity;
    }
    *known = said;
    known->identity = fold(fold(code, said.name), fold(said.file, said.lines) ^ fold(said.contents, (uint32_t)said.first_line));
    return known->identity;
}

/* A code object may die and another get its address.  While nothing is proved its contents are read anyhow. */
INLINE uint64_t identity_of(const struct reading *reading, uint64_t code)
{
    uint32_t at = reading->layout->code_version, version = 0;
    if (at != PYTHON_NOT_THERE)
        version = (uint32_t)number(reading, code + at);
    uint64_t by_contents = !version || reading->checked ? identity_by_contents(reading, code) : 0;
    return version ? fold(code, version) : by_contents;
}

INLINE bool is_c_frame(const struct reading *reading, uint64_t frame)
{
    const struct python_layout *layout = reading->layout;
    return layout->owner != PYTHON_NOT_THERE && byte(reading, frame + layout->owner) >= layout->owner_c;
}

/* Byte offset of the instruction, -1: not begun. */
INLINE int32_t instruction_of(const struct reading *reading, uint64_t frame, uint64_t code)
{
    const struct python_layout *layout = reading->layout;
    if (layout->instruction_unit) {
        int32_t index = number(reading, frame + layout->instruction);
        return index < 0 ? -1 : (int32_t)((uint32_t)index * layout->instruction_unit & INT32_MAX);
    }
    uint64_t offset = word(reading, frame + layout->instruction) - (code + layout->bytes);
    return offset > INT32_MAX ? -1 : (int32_t)offset;
}

/* Before its first traceable instruction a frame is the interpreter's own business: cells being made, the helper that
 * calls __init__.  Generators' frames are never that. */
INLINE bool is_hidden(const struct reading *reading, uint64_t frame, uint64_t code, int32_t instruction)
{
    const struct python_layout *layout = reading->layout;
    if (layout->first_traceable == PYTHON_NOT_THERE || byte(reading, frame + layout->owner) == 1)
        return false;
    int32_t first = number(reading, code + layout->first_traceable);
    return first > 0 && first < INT32_MAX / 2 && instruction < first * (int32_t)PYTHON_CODE_UNIT;
}

INLINE uint64_t first_frame(const struct reading *reading, uint64_t thread)
{
    const struct python_layout *layout = reading->layout;
    uint64_t frame = word(reading, thread + layout->thread_frame);
    return frame && layout->cframe_frame != PYTHON_NOT_THERE ? word(reading, frame + layout->cframe_frame) : frame;
}

/* Did C enter the interpreter for this frame?  Where C's frames are in the chain, the one behind it tells. */
INLINE bool is_entry(const struct reading *reading, uint64_t frame, uint64_t previous)
{
    const struct python_layout *layout = reading->layout;
    if (layout->owner == PYTHON_NOT_THERE)
        return true;
    if (layout->entry != PYTHON_NOT_THERE)
        return byte(reading, frame + layout->entry);
    return !previous || is_c_frame(reading, previous);
}

INLINE void walk_over(const struct reading *reading, uint64_t thread)
{
    const struct python_layout *layout = reading->layout;
    struct python_walk *walk = reading->walk;
    uint64_t frame = first_frame(reading, thread);
    uint32_t count = 0, steps = 0;
    for (; frame && count < walk->limit && !walk->failed && steps < 4 * walk->limit + 64; steps++) {
        uint64_t at = frame, previous = word(reading, at + layout->previous);
        frame = previous;
        if (is_c_frame(reading, at))
            continue;
        uint64_t code = word(reading, at + layout->code) & layout->code_mask;
        bool entry = is_entry(reading, at, previous);
        if (!code || word(reading, code + PYTHON_TYPE) != layout->code_type) {
            walk->failed = true;
            break;
        }
        int32_t instruction = instruction_of(reading, at, code);
        if (is_hidden(reading, at, code, instruction)) {
            if (entry && count)
                walk->frames[count - 1].flags |= RING_PYTHON_ENTRY;
            continue;
        }
        walk->frames[count++] = (struct python_frame){code, identity_of(reading, code), instruction,
                                                      entry ? RING_PYTHON_ENTRY : 0};
    }
    walk->count = count;
}

static void walk_checked(const struct python_layout *layout, uint64_t thread, struct python_walk *walk)
{
    const struct reading reading = {layout, walk, true};
    walk_over(&reading, thread);
}

static void walk_directly(const struct python_layout *layout, uint64_t thread, struct python_walk *walk)
{
    const struct reading reading = {layout, walk, false};
    walk_over(&reading, thread);
}

void python_walk(const struct python_layout *layout, uint64_t thread, struct python_walk *walk, bool checked)
{
    walk->failed = false;
    walk->count = 0;
    (checked ? walk_checked : walk_directly)(layout, thread, walk);
}

/* --- several interpreters --------------------------------------------------------------------------------------------- */

/* Has another state of this interpreter the same thread, and frames? */
static bool has_other(const struct python_layout *layout, uint64_t interpreter, uint64_t thread, uint64_t thread_number)
{
    uint64_t other, one, frame;
    if (!python_copy(&other, interpreter + layout->interpreter_threads, sizeof(other)))
        return false;
    for (int i = 0; i < 4096 && other; i++) {
        if (!python_copy(&one, other + layout->thread_number, sizeof(one)) ||
            !python_copy(&frame, other + layout->thread_frame, sizeof(frame)))
            return false;
        if (layout->cframe_frame != PYTHON_NOT_THERE && frame &&
            !python_copy(&frame, frame + layout->cframe_frame, sizeof(frame)))
            return false;
        if (other != thread && one == thread_number && frame)
            return true;
        if (!python_copy(&other, other + layout->thread_next, sizeof(other)))
            return false;
    }
    return false;
}

/* The lists are other threads' and may change meanwhile: they are read through the kernel, and only where there is more
 * than one interpreter. */
bool python_is_ambiguous(const struct python_layout *layout, uint64_t thread)
{
    uint64_t first, next, number;
    if (layout->follows_interpreters)
        return false;
    memcpy(&first, (const void *)(uintptr_t)(layout->runtime + layout->interpreters), sizeof(first));
    if (!first)
        return false;
    memcpy(&next, (const void *)(uintptr_t)first, sizeof(next)); /* an interpreter begins with the next one */
    memcpy(&number, (const void *)(uintptr_t)(thread + layout->thread_number), sizeof(number));
    for (int i = 0; next && first && i < 256; i++) {
        if (has_other(layout, first, thread, number))
            return true;
        if (!python_copy(&first, first, sizeof(first)))
            return false;
    }
    return false;
}

/* --- code objects ------------------------------------------------------------------------------------------------------ */

static size_t put_utf8(char *to, uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) /* bytes of a file's name that are no text, as Python keeps them */
        c = 0xfffd;
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(marks[length] | c);
    return length;
}

/* A text of `longest` characters at most; what is longer is cut. */
static bool read_text(const struct python_layout *layout, uint64_t object, size_t longest, struct python_text *text)
{
    static union { /* under the intern lock; too big for a small thread's stack */
        uint8_t one[FILE_LONGEST];
        uint16_t two[FILE_LONGEST];
        uint32_t four[FILE_LONGEST];
    } characters;
    uint64_t length, data;
    uint32_t state;
    if (!object || !python_copy(&length, object + PYTHON_SIZE, sizeof(length)) ||
        !python_copy(&state, object + PYTHON_TEXT_STATE, sizeof(state)))
        return false;
    state >>= layout->text_kind; /* its kind, whether it is compact, whether ASCII */
    size_t kind = state & 7;
    bool is_compact = state >> 3 & 1, is_ascii = state >> 4 & 1;
    if (kind != 1 && kind != 2 && kind != 4)
        return false;
    data = object + (is_ascii ? layout->ascii_size : layout->compact_size);
    if (!is_compact && !python_copy(&data, object + layout->compact_size, sizeof(data)))
        return false;
    length = length < longest ? length : longest;
    length = length < text->capacity / 4 ? length : text->capacity / 4;
    if (length && !python_copy(&characters, data, length * kind))
        return false;
    text->length = 0;
    for (size_t i = 0; i < length; i++)
        text->length += put_utf8(text->bytes + text->length, kind == 1   ? characters.one[i]
                                                             : kind == 2 ? characters.two[i]
                                                                         : characters.four[i]);
    return true;
}

/* A table that is longer than the room is left out: its frames have no lines. */
static bool read_bytes(uint64_t object, struct python_text *text)
{
    uint64_t length;
    text->length = 0;
    if (!object || !python_copy(&length, object + PYTHON_SIZE, sizeof(length)))
        return false;
    if (length > text->capacity)
        return true;
    text->length = length;
    return !length || python_copy(text->bytes, object + PYTHON_BYTES_DATA, length);
}

bool python_read_code(const struct python_layout *layout, uint64_t code, struct python_code_texts *texts)
{
    uint64_t type, name, file, lines;
    return python_copy(&type, code + PYTHON_TYPE, sizeof(type)) && type == layout->code_type &&
           python_copy(&name, code + layout->name, sizeof(name)) &&
           python_copy(&file, code + layout->file, sizeof(file)) &&
           python_copy(&lines, code + layout->lines, sizeof(lines)) &&
           python_copy(&texts->first_line, code + layout->first_line, sizeof(texts->first_line)) &&
           read_text(layout, name, NAME_LONGEST, &texts->name) && read_text(layout, file, FILE_LONGEST, &texts->file) &&
           read_bytes(lines, &texts->lines);
}
