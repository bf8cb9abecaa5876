/* What the files of the ring reader share: ring_read.c gets the pieces out of the file, ring_state.c finds what lives
 * at the end, ring_blocks.c which segments an allocator cut into blocks, ring_build.c and ring_build_state.c make the
 * snapshot.  Not for others. */
#ifndef FORMAT_RING_READER_H
#define FORMAT_RING_READER_H

#include "record/ring.h"
#include "snapshot/snapshot.h"

struct ring_event {
    struct ring_slot slot;
    uint64_t position; /* in its ring */
    uint64_t requested, pool;
    uint32_t context; /* of the snapshot, once made */
    uint32_t life;    /* the one that it makes or revives, or the first that it ends; NONE32 */
    uint32_t refused; /* the thread's refusal before this one, NONE32 */
    uint64_t came;    /* of the end of memory that came while recording was paused: when that was, 0: none or not told */
    bool is_unrecorded; /* one of our own for such memory: it stands behind the event of the same sequence */
    bool is_step;     /* a refusal by the driver on the way of an allocator that tells itself how it ended */
};

/* A segment from its allocation (or from before the ring) to its end. */
struct ring_life {
    uint64_t start, size;
    uint32_t next;    /* ended by the same event, NONE32: none */
    uint16_t device;
    bool holds_blocks; /* else it is one block itself */
};

struct ring_item { /* something that was live at some time */
    uint64_t key;
    struct ring_live record;
    uint32_t event;   /* index of the event that made it, NONE32: not in the ring any more, or never */
    uint64_t tabled;  /* sequence of what the table had at this key, 0: nothing */
    bool alive;
};

struct ring_items {
    struct ring_item *items;
    size_t count, capacity;
    struct table index; /* key -> the latest item */
};

struct ring_reader {
    int fd;
    uint64_t size;
    struct error *err;
    struct ring_header header;
    uint64_t sequence_at_first; /* when the table of live memory had not been read yet */
    struct ring_device devices[RING_DEVICES];
    bool statistics_torn;
    uint64_t forgotten[RING_DEVICES]; /* events that are still there and not to be shown */
    bool living_only; /* no events: what lives and the numbers */
    char *calls;
    struct ring_node *nodes;
    struct ring_module *modules;
    char *strings;
    uint64_t node_count, module_count, string_count;
    struct ring_python_node *python_nodes;
    struct ring_code *codes;
    uint64_t python_node_count, code_count;
    struct ring_event *events; /* in order of sequence */
    size_t event_count, event_capacity;
    struct ring_annotation *annotations; /* in order */
    size_t annotation_count, annotation_capacity;
    uint64_t shown[RING_DEVICES]; /* events of each device that are kept */
    struct ring_items live;
    bool has_blocks;           /* a framework told of its blocks; without, there are no lives */
    struct ring_life *lives;
    size_t life_count, life_capacity;
    uint32_t *open;            /* lives that have not ended, by start */
    size_t open_count, open_capacity;
    int64_t retries[RING_DEVICES]; /* requests of an allocator that the driver refused at first */
};

/* length bytes at offset, or an error that says what was looked for. */
int ring_read_at(struct ring_reader *reader, uint64_t offset, void *buffer, uint64_t length, const char *what);

/* The live table as the file has it; first of all, because what is freed meanwhile is still in the ring. */
int ring_read_live(struct ring_reader *reader);
/* What the program named; after the events, before the tables. */
int ring_read_annotations(struct ring_reader *reader);
/* Events for memory that came without any. */
int ring_add_unrecorded(struct ring_reader *reader);
/* Physical memory that is mapped nowhere has no events in the ring: they are made of what the table says. */
int ring_add_unmapped(struct ring_reader *reader);
/* Then the ring's events decide about every address that they mention. */
int ring_settle_live(struct ring_reader *reader);

/* Which segments were cut into blocks: those that hold one at some time of their lives. */
int ring_find_blocks(struct ring_reader *reader);
/* Does the segment that begins here, and lives at the end, hold blocks? */
bool ring_holds_blocks(const struct ring_reader *reader, uint64_t start, uint16_t device);

int ring_build(struct ring_reader *reader, struct snapshot *snapshot);

static inline bool ring_is_block_action(uint8_t action)
{
    return action == ACTION_ALLOC || action == ACTION_FREE_REQUESTED || action == ACTION_FREE_COMPLETED;
}

#endif
