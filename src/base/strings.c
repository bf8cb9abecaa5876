/* String interner over chunks that never move; uses base/array, base/table's hash. */
#include "base/strings.h"

#include "base/array.h"
#include "base/error.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

enum { STRINGS_CHUNK = 64 * 1024 };

struct entry {
    const char *text;
    uint32_t length;
    uint32_t hash;
};

struct strings {
    struct entry *entries;
    size_t count, capacity;
    uint32_t *slots; /* number + 1, 0 = free */
    size_t slot_count;
    char **chunks;
    size_t chunk_count, chunk_capacity;
    size_t chunk_used, chunk_size;
};

struct strings *strings_new(void)
{
    struct strings *strings = calloc(1, sizeof(*strings));
    if (strings && strings_intern(strings, "", 0) == STRING_NONE) {
        strings_free(strings);
        strings = NULL;
    }
    return strings;
}

void strings_free(struct strings *strings)
{
    if (!strings)
        return;
    for (size_t i = 0; i < strings->chunk_count; i++)
        free(strings->chunks[i]);
    free(strings->chunks);
    free(strings->entries);
    free(strings->slots);
    free(strings);
}

static size_t strings_slot(const struct strings *strings, const char *bytes, size_t length, uint32_t hash)
{
    size_t mask = strings->slot_count - 1;
    size_t slot = hash & mask;
    while (strings->slots[slot]) {
        const struct entry *entry = &strings->entries[strings->slots[slot] - 1];
        if (entry->hash == hash && entry->length == length && memcmp(entry->text, bytes, length) == 0)
            break;
        slot = (slot + 1) & mask;
    }
    return slot;
}

static int strings_rehash(struct strings *strings)
{
    size_t wanted = strings->slot_count ? strings->slot_count * 2 : 64;
    uint32_t *slots = calloc(wanted, sizeof(*slots));
    if (!slots)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < strings->count; i++) {
        size_t slot = strings->entries[i].hash & (wanted - 1);
        while (slots[slot])
            slot = (slot + 1) & (wanted - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    free(strings->slots);
    strings->slots = slots;
    strings->slot_count = wanted;
    return STATUS_OK;
}

/* Room for length + 1 bytes that will never move. */
static char *strings_place(struct strings *strings, size_t length)
{
    if (strings->chunk_size - strings->chunk_used < length + 1) {
        size_t size = length + 1 > STRINGS_CHUNK ? length + 1 : STRINGS_CHUNK;
        if (array_reserve(&strings->chunks, &strings->chunk_capacity, strings->chunk_count + 1,
                          sizeof(*strings->chunks)))
            return NULL;
        char *chunk = malloc(size);
        if (!chunk)
            return NULL;
        strings->chunks[strings->chunk_count++] = chunk;
        strings->chunk_size = size;
        strings->chunk_used = 0;
    }
    char *place = strings->chunks[strings->chunk_count - 1] + strings->chunk_used;
    strings->chunk_used += length + 1;
    return place;
}

uint32_t strings_intern(struct strings *strings, const char *bytes, size_t length)
{
    if (length >= UINT32_MAX || strings->count >= UINT32_MAX - 1)
        return STRING_NONE;
    if ((strings->count + 1) * 4 > strings->slot_count * 3 && strings_rehash(strings))
        return STRING_NONE;
    uint32_t hash = (uint32_t)hash_bytes(bytes, length);
    size_t slot = strings_slot(strings, bytes, length, hash);
    if (strings->slots[slot])
        return strings->slots[slot] - 1;
    if (array_reserve(&strings->entries, &strings->capacity, strings->count + 1, sizeof(*strings->entries)))
        return STRING_NONE;
    char *text = strings_place(strings, length);
    if (!text)
        return STRING_NONE;
    if (length)
        memcpy(text, bytes, length);
    text[length] = '\0';
    strings->entries[strings->count] = (struct entry){text, (uint32_t)length, hash};
    strings->slots[slot] = (uint32_t)++strings->count;
    return (uint32_t)strings->count - 1;
}

uint32_t strings_intern_text(struct strings *strings, const char *text)
{
    return strings_intern(strings, text, strlen(text));
}

uint32_t strings_find(const struct strings *strings, const char *bytes, size_t length)
{
    if (!strings->slot_count || length >= UINT32_MAX)
        return STRING_NONE;
    size_t slot = strings_slot(strings, bytes, length, (uint32_t)hash_bytes(bytes, length));
    return strings->slots[slot] ? strings->slots[slot] - 1 : STRING_NONE;
}

uint32_t strings_count(const struct strings *strings)
{
    return (uint32_t)strings->count;
}

const char *strings_text(const struct strings *strings, uint32_t number)
{
    return number < strings->count ? strings->entries[number].text : "";
}

size_t strings_length(const struct strings *strings, uint32_t number)
{
    return number < strings->count ? strings->entries[number].length : 0;
}
