/*
 * The ring file's pieces, each checked before it is used: header, devices, tables, slots.  May use src/base, the layout
 * in src/record/ring.h and the snapshot.
 */
#include "format/ring_read.h"

#include "base/array.h"
#include "format/ring_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLOTS_AT_ONCE 4096u
#define STEADY_TRIES 200 /* to find a live file's statistics at rest */

bool ring_is_ring(const unsigned char *start, size_t length)
{
    return length >= 8 && !memcmp(start, RING_MAGIC, 8);
}

int ring_read_at(struct ring_reader *reader, uint64_t offset, void *buffer, uint64_t length, const char *what)
{
    char *to = buffer;
    uint64_t done = 0;
    if (offset > reader->size || length > reader->size - offset)
        return error_at(reader->err, STATUS_INPUT, offset, "ends before %s", what);
    while (done < length) {
        ssize_t count = pread(reader->fd, to + done, length - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_at(reader->err, STATUS_INPUT, offset + done, "cannot read %s: %s", what, strerror(errno));
        if (count == 0)
            return error_at(reader->err, STATUS_INPUT, offset + done, "ends in the middle of %s", what);
        done += (uint64_t)count;
    }
    return STATUS_OK;
}

static int open_ring_file(struct ring_reader *reader, const char *path)
{
    struct stat status;
    reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (reader->fd < 0)
        return error_set(reader->err, STATUS_INPUT, "cannot be opened: %s", strerror(errno));
    if (fstat(reader->fd, &status))
        return error_set(reader->err, STATUS_INPUT, "cannot be looked at: %s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return error_set(reader->err, STATUS_INPUT, "is no regular file");
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return error_set(reader->err, STATUS_INPUT, "is a ring file of another user (%lu), which is not read",
                         (unsigned long)status.st_uid);
    reader->size = (uint64_t)status.st_size;
    return STATUS_OK;
}

/* A live file grows: its size is asked again before it is called too short. */
static int check_size(struct ring_reader *reader)
{
    struct stat status;
    if (reader->header.file_size > reader->size && !fstat(reader->fd, &status))
        reader->size = (uint64_t)status.st_size;
    if (reader->header.file_size > reader->size)
        return error_at(reader->err, STATUS_INPUT, reader->size, "ends here; it says that it has %" PRIu64 " bytes",
                        reader->header.file_size);
    return STATUS_OK;
}

#define TERMINATE(text) ((text)[sizeof(text) - 1] = 0)

static int check_header(struct ring_reader *reader)
{
    struct ring_header *header = &reader->header;
    struct error *err = reader->err;
    if (memcmp(header->magic, RING_MAGIC, sizeof(header->magic)))
        return error_at(err, STATUS_INPUT, 0, "is no ring file");
    if (header->major != RING_MAJOR)
        return error_at(err, STATUS_UNSUPPORTED, offsetof(struct ring_header, major),
                        "is a ring file of version %u.%u; this program reads version %u", header->major, header->minor,
                        RING_MAJOR);
    if (header->byte_order != 0x01020304)
        return error_at(err, STATUS_INPUT, offsetof(struct ring_header, byte_order),
                        "was written by a machine of another byte order");
    if (header->header_size != sizeof(struct ring_header) || header->device_size != sizeof(struct ring_device) ||
        header->slot_size != sizeof(struct ring_slot))
        return error_at(err, STATUS_INPUT, offsetof(struct ring_header, header_size), "has parts of an unknown size");
    if (!header->ready)
        return error_at(err, STATUS_INPUT, offsetof(struct ring_header, ready), "was not finished when it was made");
    if (header->slots < RING_MIN_SLOTS || header->slots > RING_MAX_SLOTS || (header->slots & (header->slots - 1)) ||
        !header->max_entries || header->max_entries > header->slots)
        return error_at(err, STATUS_INPUT, offsetof(struct ring_header, slots), "has an impossible number of entries");
    if (header->clock > RING_CLOCK_NANOSECONDS)
        return error_at(err, STATUS_INPUT, offsetof(struct ring_header, clock), "has an unknown clock");
    TERMINATE(header->program);
    TERMINATE(header->host);
    TERMINATE(header->boot_id);
    TERMINATE(header->output);
    TERMINATE(header->driver_path);
    header->environment[sizeof(header->environment) - 2] = TERMINATE(header->environment);
    return STATUS_OK;
}

static int read_header(struct ring_reader *reader)
{
    memset(&reader->header, 0, sizeof(reader->header));
    uint64_t length = reader->size < sizeof(reader->header) ? reader->size : sizeof(reader->header);
    int status = ring_read_at(reader, 0, &reader->header, length, "the header");
    if (!status && length >= 8 && !memcmp(reader->header.magic, RING_MAGIC, 8))
        status = ring_read_at(reader, 0, &reader->header, sizeof(reader->header), "the end of the header");
    if (!status)
        status = check_header(reader);
    return status ? status : check_size(reader);
}

/* Sequence, counters and statistics move together under the header's lock: read them at rest, so that they agree. */
static int read_steady(struct ring_reader *reader)
{
    const struct timespec pause = {0, 50000};
    for (int i = 0; i < STEADY_TRIES; i++) {
        uint64_t before = reader->header.sequence;
        uint32_t lock = reader->header.lock;
        int status = ring_read_at(reader, reader->header.devices, reader->devices, sizeof(reader->devices), "the devices");
        if (status || (status = read_header(reader)))
            return status;
        reader->statistics_torn = lock || reader->header.lock || reader->header.sequence != before;
        if (!reader->statistics_torn)
            break;
        nanosleep(&pause, NULL);
    }
    return STATUS_OK;
}

/* A table into one piece of memory.  Its count was right when the header was read; chunks come one after another. */
static int read_table(struct ring_reader *reader, enum ring_table_name name, size_t element, const char *what,
                      void **result, uint64_t *result_count)
{
    const struct ring_table *table = &reader->header.tables[name];
    uint64_t at = offsetof(struct ring_header, tables) + name * sizeof(*table);
    if (table->element != element || !table->first || (table->first & (table->first - 1)) ||
        table->count > reader->size / element || table->count >= NONE32 - RING_STACK_FIRST)
        return error_at(reader->err, STATUS_INPUT, at, "has an impossible table of %s", what);
    char *bytes = malloc(table->count * element + 1);
    if (!bytes)
        return error_no_memory(reader->err);
    *result = bytes;
    *result_count = table->count;
    for (uint64_t done = 0, chunk = 0; done < table->count; chunk++) {
        uint64_t count = chunk < RING_TABLE_CHUNKS ? (uint64_t)table->first << chunk : 0;
        if (count > table->count - done)
            count = table->count - done;
        if (!count || !table->chunks[chunk])
            return error_at(reader->err, STATUS_INPUT, at, "lacks a part of its table of %s", what);
        int status = ring_read_at(reader, table->chunks[chunk], bytes + done * element, count * element, what);
        if (status)
            return status;
        done += count;
    }
    return STATUS_OK;
}

static int read_python_tables(struct ring_reader *reader)
{
    void *nodes = NULL, *codes = NULL;
    int status = read_table(reader, RING_PYTHON_NODES, sizeof(struct ring_python_node), "Python's stacks", &nodes,
                            &reader->python_node_count);
    reader->python_nodes = nodes;
    if (!status)
        status = read_table(reader, RING_CODES, sizeof(struct ring_code), "Python's functions", &codes,
                            &reader->code_count);
    reader->codes = codes;
    return status;
}

static int read_tables(struct ring_reader *reader)
{
    void *nodes = NULL, *modules = NULL, *strings = NULL;
    int status = read_table(reader, RING_NODES, sizeof(struct ring_node), "stacks", &nodes, &reader->node_count);
    reader->nodes = nodes;
    if (!status)
        status = read_table(reader, RING_MODULES, sizeof(struct ring_module), "modules", &modules, &reader->module_count);
    reader->modules = modules;
    if (!status)
        status = read_table(reader, RING_STRINGS, 1, "strings", &strings, &reader->string_count);
    reader->strings = strings;
    return status ? status : read_python_tables(reader);
}

static int read_calls(struct ring_reader *reader)
{
    const struct ring_header *header = &reader->header;
    if (header->calls_size > reader->size || header->call_count > UINT16_MAX)
        return error_at(reader->err, STATUS_INPUT, offsetof(struct ring_header, calls_size),
                        "has an impossible list of driver calls");
    reader->calls = malloc(header->calls_size + 1);
    if (!reader->calls)
        return error_no_memory(reader->err);
    reader->calls[header->calls_size] = 0;
    return ring_read_at(reader, header->calls, reader->calls, header->calls_size, "the names of driver calls");
}

/* --- slots ------------------------------------------------------------------------------------------------------- */

/* Is it a whole event of this device, from before the header was read?  0 no, 1 yes, else an error. */
static int accept_slot(struct ring_reader *reader, const struct ring_slot *slot, uint16_t device, uint64_t offset)
{
    if (!slot->sequence || (slot->sequence & RING_BUSY) || slot->sequence > reader->header.sequence)
        return 0;
    if (slot->sequence <= reader->header.forgotten) {
        reader->forgotten[device]++;
        return 0;
    }
    if (slot->device != device || slot->action > ACTION_OOM || (slot->flags & RING_KIND_MASK) >= MEMORY_KIND_COUNT)
        return error_at(reader->err, STATUS_INPUT, offset, "has an event that makes no sense");
    return 1;
}

static int keep_slot(struct ring_reader *reader, const struct ring_slot *slot, uint64_t position)
{
    if (reader->event_count >= NONE32 - 1 ||
        array_reserve(&reader->events, &reader->event_capacity, reader->event_count + 1, sizeof(*reader->events)))
        return error_no_memory(reader->err);
    reader->events[reader->event_count++] = (struct ring_event){*slot, position, UINT64_MAX, 0, CONTEXT_NONE, NONE32};
    return STATUS_OK;
}

/* Slots that have ever held an event: a ring for a thousand million of them is mostly empty. */
static uint64_t used_slots(const struct ring_reader *reader, uint16_t device)
{
    uint64_t head = reader->devices[device].head;
    return head < reader->header.slots ? head : reader->header.slots;
}

/* Slots are copied twice: what did not change meanwhile is whole. */
static int read_slots(struct ring_reader *reader, uint16_t device, struct ring_slot *copies)
{
    struct ring_slot *again = copies + SLOTS_AT_ONCE;
    uint64_t used = used_slots(reader, device);
    for (uint64_t first = 0; first < used; first += SLOTS_AT_ONCE) {
        uint64_t count = used - first < SLOTS_AT_ONCE ? used - first : SLOTS_AT_ONCE;
        uint64_t offset = reader->devices[device].ring + first * sizeof(struct ring_slot);
        int status = ring_read_at(reader, offset, copies, count * sizeof(*copies), "the ring");
        if (!status)
            status = ring_read_at(reader, offset, again, count * sizeof(*copies), "the ring");
        for (uint64_t i = 0; !status && i < count; i++, offset += sizeof(struct ring_slot)) {
            for (int tries = 0; memcmp(&copies[i], &again[i], sizeof(*copies)) && tries < 8 && !status; tries++) {
                copies[i] = again[i];
                status = ring_read_at(reader, offset, &again[i], sizeof(*again), "the ring");
            }
            if (status || memcmp(&copies[i], &again[i], sizeof(*copies)))
                continue;
            status = accept_slot(reader, &copies[i], device, offset);
            status = status > 0 ? keep_slot(reader, &copies[i], first + i) : status;
        }
        if (status)
            return status;
    }
    return STATUS_OK;
}

static int compare_events(const void *a, const void *b)
{
    const struct ring_event *x = a, *y = b;
    return x->slot.sequence < y->slot.sequence ? -1 : x->slot.sequence > y->slot.sequence;
}

/* In order, and of each device the newest max_entries. */
static void order_events(struct ring_reader *reader)
{
    if (!reader->event_count)
        return;
    qsort(reader->events, reader->event_count, sizeof(*reader->events), compare_events);
    size_t to = reader->event_count;
    for (size_t i = reader->event_count; i-- > 0;) {
        uint64_t *shown = &reader->shown[reader->events[i].slot.device];
        if (*shown == reader->header.max_entries)
            continue;
        ++*shown;
        reader->events[--to] = reader->events[i];
    }
    reader->event_count -= to;
    memmove(reader->events, reader->events + to, reader->event_count * sizeof(*reader->events));
}

static int read_events(struct ring_reader *reader)
{
    for (uint16_t device = 0; device < RING_DEVICES && reader->living_only; device++)
        reader->shown[device] = used_slots(reader, device) < reader->header.max_entries ? used_slots(reader, device)
                                                                                        : reader->header.max_entries;
    if (reader->living_only)
        return STATUS_OK;
    struct ring_slot *copies = malloc(2 * SLOTS_AT_ONCE * sizeof(*copies));
    if (!copies)
        return error_no_memory(reader->err);
    int status = STATUS_OK;
    for (uint16_t device = 0; device < RING_DEVICES && !status; device++)
        if (reader->devices[device].ring)
            status = read_slots(reader, device, copies);
    free(copies);
    if (!status)
        order_events(reader);
    return status;
}

/* --- extensions --------------------------------------------------------------------------------------------------- */

/* The extensions of one device, all chunks side by side; what is not there stays zero. */
static int read_extensions(struct ring_reader *reader, uint16_t device, struct ring_extension **result)
{
    uint64_t a_chunk = reader->header.slots / RING_EXTENSION_CHUNKS, used = used_slots(reader, device);
    *result = calloc(used + 1, sizeof(**result));
    if (!*result)
        return error_no_memory(reader->err);
    for (size_t i = 0; i < RING_EXTENSION_CHUNKS && i * a_chunk < used; i++) {
        uint64_t offset = reader->devices[device].extensions[i];
        uint64_t count = used - i * a_chunk < a_chunk ? used - i * a_chunk : a_chunk;
        int status = offset ? ring_read_at(reader, offset, *result + i * a_chunk, count * sizeof(**result),
                                           "extensions of events") : STATUS_OK;
        if (status)
            return status;
    }
    return STATUS_OK;
}

/* An extension stands at its event's place and has its sequence number. */
static int join_extensions(struct ring_reader *reader)
{
    for (uint16_t device = 0; device < RING_DEVICES; device++) {
        bool any = false;
        for (size_t i = 0; i < reader->event_count && !any; i++)
            any = reader->events[i].slot.device == device && (reader->events[i].slot.flags & RING_EXTENDED);
        if (!any)
            continue;
        struct ring_extension *extensions = NULL;
        int status = read_extensions(reader, device, &extensions);
        for (size_t i = 0; !status && i < reader->event_count; i++) {
            struct ring_event *event = &reader->events[i];
            if (event->slot.device != device || !(event->slot.flags & RING_EXTENDED))
                continue;
            const struct ring_extension *extension = &extensions[event->position];
            if (extension->sequence != event->slot.sequence) /* overwritten while we read */
                continue;
            event->requested = extension->requested;
            event->pool = extension->pool;
            event->came = extension->came;
        }
        free(extensions);
        if (status)
            return status;
    }
    return STATUS_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static int read_pieces(struct ring_reader *reader, const char *path)
{
    int status = open_ring_file(reader, path);
    if (!status)
        status = read_header(reader);
    reader->sequence_at_first = reader->header.sequence;
    if (!status)
        status = read_calls(reader);
    if (!status)
        status = ring_read_live(reader);
    if (!status)
        status = read_steady(reader);
    if (!status)
        status = read_events(reader);
    if (!status)
        status = join_extensions(reader);
    if (!status)
        status = ring_add_unmapped(reader);
    if (!status)
        status = ring_read_annotations(reader);
    uint64_t sequence = reader->header.sequence;
    if (!status) /* stacks that the events name were complete before them */
        status = read_header(reader);
    reader->header.sequence = sequence;
    if (!status)
        status = read_tables(reader);
    if (!status)
        status = ring_add_unrecorded(reader);
    if (!status)
        status = ring_settle_live(reader);
    return status ? status : ring_find_blocks(reader);
}

static void close_reader(struct ring_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader->calls);
    free(reader->nodes);
    free(reader->modules);
    free(reader->strings);
    free(reader->python_nodes);
    free(reader->codes);
    free(reader->events);
    free(reader->annotations);
    free(reader->live.items);
    free(reader->lives);
    free(reader->open);
    table_free(&reader->live.index);
    free(reader);
}

static int read_ring(const char *path, bool living_only, struct snapshot **result, struct error *err)
{
    struct error ignored;
    *result = NULL;
    struct ring_reader *reader = calloc(1, sizeof(*reader));
    struct snapshot *snapshot = snapshot_new(SOURCE_RECORDED);
    int status = STATUS_OK;
    if (!reader || !snapshot) {
        free(reader);
        snapshot_free(snapshot);
        return error_no_memory(err);
    }
    reader->fd = -1;
    reader->err = err ? err : &ignored;
    reader->living_only = living_only;
    status = read_pieces(reader, path);
    if (!status)
        status = ring_build(reader, snapshot);
    if (!status && !snapshot_is_valid(snapshot, reader->err))
        status = STATUS_INPUT;
    close_reader(reader);
    if (status)
        snapshot_free(snapshot);
    else
        *result = snapshot;
    return status;
}

int ring_read(const char *path, struct snapshot **result, struct error *err)
{
    return read_ring(path, false, result, err);
}

int ring_read_living(const char *path, struct snapshot **result, struct error *err)
{
    return read_ring(path, true, result, err);
}

int ring_read_facts(const char *path, struct ring_facts *facts, struct error *err)
{
    struct error ignored;
    struct ring_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return error_no_memory(err);
    reader->fd = -1;
    reader->err = err ? err : &ignored;
    int status = open_ring_file(reader, path);
    if (!status)
        status = read_header(reader);
    const struct ring_header *header = &reader->header;
    if (!status) {
        *facts = (struct ring_facts){.pid = header->pid, .parent = header->parent, .rank = header->rank,
                                     .start_time = header->start_time / 1000, .end_time = header->end_time / 1000,
                                     .events = header->sequence, .finished = header->state & RING_FINISHED,
                                     .paused = __atomic_load_n(&header->paused, __ATOMIC_RELAXED)};
        memcpy(facts->program, header->program, sizeof(facts->program));
        memcpy(facts->output, header->output, sizeof(facts->output));
        memcpy(facts->boot_id, header->boot_id, sizeof(facts->boot_id));
    }
    close_reader(reader);
    return status;
}
