/*
 * Code objects into the file: what a code object says of itself is copied once.  Code objects die and are made again from
 * the same text (20,000 of a function that is compiled in a loop), so equal ones share a number, and equal texts their
 * bytes.  All of it under the intern lock.
 */
#include "record/internal.h"

#include <string.h>
#include <sys/mman.h>

#define CODES_MOST (1u << 20)
#define TEXTS_MOST (UINT64_C(256) << 20) /* bytes */
#define LINES_LONGEST (1u << 20)
#define NAME_ROOM 4096u
#define FILE_ROOM 16384u
#define IDENTITIES 4096u /* a power of two */

struct text_place {
    uint64_t hash, offset;
    uint32_t length, is_used;
};

static struct {
    struct text_place *texts; /* open addressing */
    size_t text_capacity, text_count;
    uint64_t text_bytes;
    uint32_t *codes;          /* number + 1, 0 free: open addressing by content */
    size_t code_capacity;
    char *room;               /* for the texts of one code object */
    struct {
        uint64_t identity;
        uint32_t number;      /* + 1 */
    } known[IDENTITIES];      /* who was met lately; forgotten when another has its place */
} code;

static void *take_pages(size_t size)
{
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

static uint64_t hash_text(const char *bytes, size_t length)
{
    uint64_t hash = length, word;
    for (; length >= sizeof(word); length -= sizeof(word), bytes += sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = fold(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, length);
    return fold(hash, word);
}

static bool grow_texts(void)
{
    size_t capacity = code.text_capacity ? code.text_capacity * 2 : 1024;
    struct text_place *texts = take_pages(capacity * sizeof(*texts));
    if (!texts)
        return false;
    for (size_t i = 0; i < code.text_capacity; i++) {
        uint64_t h = code.texts[i].hash;
        if (!code.texts[i].is_used)
            continue;
        while (texts[h & (capacity - 1)].is_used)
            h++;
        texts[h & (capacity - 1)] = code.texts[i];
    }
    if (code.texts)
        munmap(code.texts, code.text_capacity * sizeof(*texts));
    code.texts = texts;
    code.text_capacity = capacity;
    return true;
}

static bool is_text_at(uint64_t offset, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) { /* may cross chunks */
        const char *c = ring_table_at(RING_STRINGS, offset + i);
        if (!c || *c != bytes[i])
            return false;
    }
    return true;
}

/* Where these bytes stand in the file, -1: no room. */
static int64_t text_offset(const struct python_text *text)
{
    if (code.text_count >= code.text_capacity / 2 && !grow_texts())
        return -1;
    uint64_t hash = hash_text(text->bytes, text->length), h = hash;
    struct text_place *place;
    for (; (place = &code.texts[h & (code.text_capacity - 1)])->is_used; h++)
        if (place->hash == hash && place->length == text->length && is_text_at(place->offset, text->bytes, text->length))
            return (int64_t)place->offset;
    if (code.text_bytes + text->length > TEXTS_MOST)
        return -1;
    int64_t offset = ring_table_add(RING_STRINGS, text->bytes, text->length);
    if (offset < 0)
        return -1;
    *place = (struct text_place){hash, (uint64_t)offset, (uint32_t)text->length, 1};
    code.text_count++;
    code.text_bytes += text->length;
    return offset;
}

static uint64_t hash_code(const struct ring_code *row)
{
    return fold(fold(row->name, row->file), fold(row->lines, (uint32_t)row->first_line));
}

static bool grow_codes(void)
{
    size_t capacity = code.code_capacity ? code.code_capacity * 2 : 1024;
    uint32_t *codes = take_pages(capacity * sizeof(*codes));
    if (!codes)
        return false;
    uint64_t count = recorder.header->tables[RING_CODES].count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t h = hash_code(ring_table_at(RING_CODES, i));
        while (codes[h & (capacity - 1)])
            h++;
        codes[h & (capacity - 1)] = (uint32_t)i + 1;
    }
    if (code.codes)
        munmap(code.codes, code.code_capacity * sizeof(*codes));
    code.codes = codes;
    code.code_capacity = capacity;
    return true;
}

static int64_t code_of_row(const struct ring_code *row)
{
    struct ring_table *table = &recorder.header->tables[RING_CODES];
    if (table->count >= code.code_capacity / 2 && !grow_codes())
        return -1;
    uint64_t h = hash_code(row);
    for (uint32_t number; (number = code.codes[h & (code.code_capacity - 1)]); h++)
        if (!memcmp(ring_table_at(RING_CODES, number - 1), row, sizeof(*row)))
            return number - 1;
    int64_t index = table->count < CODES_MOST ? ring_table_add(RING_CODES, row, 1) : -1;
    if (index >= 0)
        code.codes[h & (code.code_capacity - 1)] = (uint32_t)index + 1;
    return index;
}

static int64_t read_code(const struct python_layout *layout, uint64_t address)
{
    if (!code.room && !(code.room = take_pages(NAME_ROOM + FILE_ROOM + LINES_LONGEST)))
        return -1;
    struct python_code_texts texts = {.name = {code.room, 0, NAME_ROOM}, .file = {code.room + NAME_ROOM, 0, FILE_ROOM},
                                      .lines = {code.room + NAME_ROOM + FILE_ROOM, 0, LINES_LONGEST}};
    if (!python_read_code(layout, address, &texts))
        return -1;
    int64_t name = text_offset(&texts.name), file = text_offset(&texts.file), lines = text_offset(&texts.lines);
    if (name < 0 || file < 0 || lines < 0)
        return -1;
    struct ring_code row = {(uint64_t)name, (uint64_t)file, (uint64_t)lines, (uint32_t)texts.name.length,
                            (uint32_t)texts.file.length, (uint32_t)texts.lines.length, texts.first_line};
    return code_of_row(&row);
}

int64_t python_code_number(const struct python_layout *layout, const struct python_frame *frame)
{
    size_t place = frame->identity & (IDENTITIES - 1);
    if (code.known[place].identity == frame->identity && code.known[place].number)
        return code.known[place].number - 1;
    int64_t number = read_code(layout, frame->code);
    if (number >= 0) {
        code.known[place].identity = frame->identity;
        code.known[place].number = (uint32_t)number + 1;
    }
    return number;
}

void python_code_forget(void)
{
    if (code.texts)
        munmap(code.texts, code.text_capacity * sizeof(*code.texts));
    if (code.codes)
        munmap(code.codes, code.code_capacity * sizeof(*code.codes));
    char *room = code.room;
    memset(&code, 0, sizeof(code));
    code.room = room;
}
