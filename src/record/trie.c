/*
 * A trie of stacks: nodes of 16 bytes in a table of the file, each with its caller's number first, and an index of them
 * in memory of our own.  Under the intern lock.
 */
#include "record/internal.h"

#include <string.h>
#include <sys/mman.h>

static uint64_t hash_node(const struct trie_node *node)
{
    return fold(node->parent | (uint64_t)node->part << 32, node->rest);
}

static bool grow(struct trie *trie)
{
    size_t capacity = trie->capacity ? trie->capacity * 2 : trie->first;
    uint32_t *slots = mmap(NULL, capacity * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return false;
    uint64_t count = recorder.header->tables[trie->table].count;
    for (uint64_t i = 0; i < count; i++) {
        struct trie_node node;
        memcpy(&node, ring_table_at(trie->table, i), sizeof(node));
        uint64_t h = hash_node(&node);
        while (slots[h & (capacity - 1)])
            h++;
        slots[h & (capacity - 1)] = (uint32_t)i + RING_STACK_FIRST;
    }
    if (trie->slots)
        munmap(trie->slots, trie->capacity * sizeof(*slots));
    trie->slots = slots;
    trie->capacity = capacity;
    return true;
}

uint32_t trie_find(struct trie *trie, const struct trie_node *node)
{
    struct ring_table *table = &recorder.header->tables[trie->table];
    if (table->count >= trie->capacity / 2 && !grow(trie))
        return RING_STACK_NONE;
    for (uint64_t h = hash_node(node);; h++) {
        uint32_t *slot = &trie->slots[h & (trie->capacity - 1)];
        if (!*slot) {
            int64_t index = table->count < recorder.max_nodes ? ring_table_add(trie->table, node, 1) : -1;
            if (index < 0)
                return RING_STACK_NONE;
            return *slot = (uint32_t)index + RING_STACK_FIRST;
        }
        if (!memcmp(ring_table_at(trie->table, *slot - RING_STACK_FIRST), node, sizeof(*node)))
            return *slot;
    }
}

void trie_forget(struct trie *trie)
{
    if (trie->slots)
        munmap(trie->slots, trie->capacity * sizeof(*trie->slots));
    trie->slots = NULL;
    trie->capacity = 0;
}
