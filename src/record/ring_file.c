/*
 * The ring file: where it goes, how it is made so that nobody else can get at it, how it grows.  Space is taken before
 * it is mapped, because a full disk under a sparse mapping would be a SIGBUS in the program.  The descriptor is not
 * kept: programs close descriptors they did not open and get the same number for something else.
 *
 * Uses system calls only; allocates nothing but mappings.
 */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TMPFS_MAGIC_NUMBER 0x01021994
#define RAMFS_MAGIC_NUMBER 0x858458f6

static uint64_t whole_pages(uint64_t size)
{
    uint64_t page = recorder.page < 4096 ? 4096 : recorder.page;
    return (size + page - 1) / page * page;
}

/* Take [offset, offset + size) of the file.  Beyond the limit on file sizes the kernel would send SIGXFSZ. */
static int take_space(int fd, uint64_t offset, uint64_t size)
{
    struct rlimit limit;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && offset + size > limit.rlim_cur) {
        errno = EFBIG;
        return -1;
    }
    int error;
    do
        error = posix_fallocate(fd, (off_t)offset, (off_t)size);
    while (error == EINTR);
    errno = error;
    return error ? -1 : 0;
}

/* A folder that is ours alone, made if it is not there.  Returns a descriptor or -1. */
static int open_folder(const char *path)
{
    if (mkdir(path, 0700) && errno != EEXIST)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) || status.st_uid != geteuid() || (status.st_mode & 077)) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

static bool lives_in_memory(int fd)
{
    struct statfs status;
    return !fstatfs(fd, &status) &&
           ((unsigned long)status.f_type == TMPFS_MAGIC_NUMBER || (unsigned long)status.f_type == RAMFS_MAGIC_NUMBER);
}

/* Our folder in one of the usual places: on disk if there is one, because pages of a tmpfs count as memory. */
static int choose_folder(void)
{
    const char *places[] = {secure_getenv("TMPDIR"), "/tmp", "/var/tmp", secure_getenv("XDG_RUNTIME_DIR"), "/dev/shm"};
    int error = ENOENT;
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
            if (!places[i] || places[i][0] != '/')
                continue;
            int length = snprintf(recorder.folder, sizeof(recorder.folder), "%s/cudamem-%u", places[i],
                                  (unsigned)geteuid());
            if (length < 0 || (size_t)length >= sizeof(recorder.folder))
                continue;
            int fd = open_folder(recorder.folder);
            if (fd < 0) {
                error = errno;
                continue;
            }
            if (in_memory || !lives_in_memory(fd))
                return fd;
            close(fd);
        }
    }
    errno = error;
    return -1;
}

static int enter_folder(void)
{
    if (!recorder.wanted_folder[0])
        return choose_folder();
    snprintf(recorder.folder, sizeof(recorder.folder), "%s", recorder.wanted_folder);
    int fd = open_folder(recorder.folder);
    return fd < 0 && errno == ENOENT ? choose_folder() : fd; /* it is on the host of the launcher, not on this one */
}

static uint64_t random_number(void)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
        number = (ticks_now() * UINT64_C(0x9e3779b97f4a7c15)) ^ (uint64_t)getpid() << 32;
    return number;
}

/* Creates PID-RANDOM.ring.new in the folder; path gets the name it will have when it is finished. */
static int create_file(int folder, char name[64])
{
    for (int attempt = 0; attempt < 4; attempt++) {
        snprintf(name, 64, "cudamem-%ld-%016llx%s%s", (long)getpid(), (unsigned long long)random_number(), RING_SUFFIX,
                 RING_UNFINISHED);
        int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0) {
            struct stat status;
            fchmod(fd, 0600); /* whatever the umask took away */
            if (fstat(fd, &status)) {
                close(fd);
                return -1;
            }
            recorder.file_device = status.st_dev;
            recorder.file_inode = status.st_ino;
            snprintf(recorder.path, sizeof(recorder.path), "%s/%.*s", recorder.folder,
                     (int)(strlen(name) - strlen(RING_UNFINISHED)), name);
            snprintf(recorder.unfinished, sizeof(recorder.unfinished), "%s/%s", recorder.folder, name);
            return fd;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* The part that is there from the beginning: header, devices, call names. */
static uint64_t calls_size(void)
{
    uint64_t size = 0;
    for (size_t i = 0; i < recorder.call_count; i++)
        size += strlen(recorder.calls[i]) + 1;
    return size;
}

static void fill_calls(char *to)
{
    for (size_t i = 0; i < recorder.call_count; i++)
        to = stpcpy(to, recorder.calls[i]) + 1;
}

static void fill_devices(struct ring_device *devices)
{
    for (size_t i = 0; i < RING_DEVICES; i++) {
        const struct recorder_fact *fact = &recorder.facts[i];
        struct ring_device *device = &devices[i];
        memcpy(device->name, fact->name, sizeof(device->name));
        memcpy(device->uuid, fact->uuid, sizeof(device->uuid));
        device->total = fact->total;
        __atomic_store_n(&device->free_bytes, __atomic_load_n(&fact->free_bytes, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
        __atomic_fetch_or(&device->known, __atomic_load_n(&fact->known, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
    }
}

/* Those that were learnt while the file was made: who learns one from now on finds the file. */
void ring_file_tell_facts(void)
{
    if (!lock_try(&recorder.fact_lock))
        return;
    fill_devices(recorder.devices);
    recorder.header->driver_version = recorder.driver_version;
    memcpy(recorder.header->driver_path, recorder.driver_path, sizeof(recorder.driver_path));
    lock_release(&recorder.fact_lock);
}

static void fill_header(struct ring_header *header, uint64_t size)
{
    header->major = RING_MAJOR;
    header->minor = RING_MINOR;
    header->header_size = sizeof(struct ring_header);
    header->device_size = sizeof(struct ring_device);
    header->slot_size = sizeof(struct ring_slot);
    header->byte_order = 0x01020304;
    header->pid = getpid();
    header->parent = getppid();
    header->rank = recorder.rank;
    header->max_entries = recorder.max_entries;
    header->slots = recorder.slots;
    header->devices = sizeof(struct ring_header);
    header->calls = header->devices + RING_DEVICES * sizeof(struct ring_device);
    header->calls_size = calls_size();
    header->call_count = (uint32_t)recorder.call_count;
    header->clock = recorder.clock;
    header->depth = recorder.stacks || recorder.python ? recorder.depth : 0;
    header->python_state = recorder.python ? RING_PYTHON_NONE : RING_PYTHON_OFF;
    header->start_time = recorder.start.realtime;
    header->calibrations[0] = recorder.start;
    memcpy(header->program, recorder.program, sizeof(header->program));
    memcpy(header->host, recorder.host, sizeof(header->host));
    memcpy(header->boot_id, recorder.boot_id, sizeof(header->boot_id));
    memcpy(header->output, recorder.output, sizeof(header->output));
    memcpy(header->environment, recorder.environment, sizeof(header->environment));
    header->file_size = size;
    header->dropped_nested = recorder.dropped_nested;
    header->dropped_waiting = recorder.dropped_waiting;
    header->tables[RING_NODES] = (struct ring_table){.element = sizeof(struct ring_node), .first = 16384};
    header->tables[RING_MODULES] = (struct ring_table){.element = sizeof(struct ring_module), .first = 256};
    header->tables[RING_STRINGS] = (struct ring_table){.element = 1, .first = 32768};
    header->tables[RING_PYTHON_NODES] = (struct ring_table){.element = sizeof(struct ring_python_node), .first = 1024};
    header->tables[RING_CODES] = (struct ring_table){.element = sizeof(struct ring_code), .first = 256};
    header->paused = recorder.paused_at_first;
    memcpy(header->magic, RING_MAGIC, sizeof(header->magic));
}

static int map_first(int fd)
{
    uint64_t size = whole_pages(sizeof(struct ring_header) + RING_DEVICES * sizeof(struct ring_device) + calls_size());
    if (take_space(fd, 0, size))
        return -1;
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -1;
    recorder.first_map = map;
    recorder.first_size = size;
    recorder.header = map;
    recorder.devices = (void *)((char *)map + sizeof(struct ring_header));
    fill_header(recorder.header, size);
    fill_calls((char *)map + recorder.header->calls);
    return 0;
}

/* Room for the first events is taken while the file is made: a disk that is full says so now, not in the middle. */
static int take_first_pieces(unsigned device)
{
    static const struct ring_live empty = {0};
    struct live_place place;
    uint64_t offset;
    recorder.rings[device] = ring_file_append(recorder.slots * sizeof(struct ring_slot), &offset);
    if (!recorder.rings[device])
        return -1;
    recorder.devices[device].ring = offset;
    if (!live_insert(1, &empty))
        return -1;
    struct ring_live copy;
    if (live_find(1, &copy, &place))
        live_remove(1, place);
    return 0;
}

int ring_file_make(unsigned device)
{
    /* A forked child goes on as its parent does. */
    recorder.paused_at_first = recorder.header ? recorder.header->paused : recorder.start_paused;
    if (recorder.header)
        recorder.fact_lock = 0; /* another thread's, in the parent */
    ring_file_forget();
    recorder.freeze_lock = 0;
    memset(recorder.copies, 0, sizeof(recorder.copies));
    recorder.grow_lock = recorder.live_lock = recorder.intern_lock = 0;
    recorder.next_growth = recorder.next_calibration = recorder.calibration_step = 0;
    recorder.calibrations = 0;
    recorder.slots = ring_slots_for(recorder.max_entries);
    int folder = enter_folder();
    if (folder < 0)
        return -1;
    char name[64];
    int fd = create_file(folder, name);
    int error = errno;
    if (fd >= 0) {
        int failed = map_first(fd) || take_first_pieces(device);
        error = errno;
        close(fd);
        if (!failed) {
            __atomic_store_n(&recorder.header->ready, 1, __ATOMIC_RELEASE);
            failed = renameat(folder, name, folder, strrchr(recorder.path, '/') + 1);
            error = errno;
        }
        if (failed) {
            unlinkat(folder, name, 0);
            fd = -1;
        }
    }
    close(folder);
    errno = error;
    return fd < 0 ? -1 : 0;
}

void ring_file_forget(void)
{
    struct ring_header *header = recorder.header;
    if (header) {
        for (size_t d = 0; d < RING_DEVICES; d++) {
            if (recorder.rings[d])
                munmap(recorder.rings[d], recorder.slots * sizeof(struct ring_slot));
            for (size_t i = 0; i < RING_EXTENSION_CHUNKS; i++)
                if (recorder.extensions[d][i])
                    munmap(recorder.extensions[d][i],
                           recorder.slots / RING_EXTENSION_CHUNKS * sizeof(struct ring_extension));
        }
        for (size_t i = 0; i < RING_LIVE_LEVELS; i++)
            if (recorder.live_keys[i])
                munmap(recorder.live_keys[i], ((size_t)RING_LIVE_FIRST << i) * (8 + sizeof(struct ring_live)));
        for (size_t t = 0; t < RING_TABLES; t++)
            for (size_t i = 0; i < RING_TABLE_CHUNKS; i++)
                if (recorder.tables[t][i])
                    munmap(recorder.tables[t][i],
                           ((size_t)header->tables[t].first << i) * header->tables[t].element);
        if (recorder.annotations)
            munmap(recorder.annotations, RING_ANNOTATIONS * sizeof(struct ring_annotation));
        munmap(recorder.first_map, recorder.first_size);
    }
    recorder.header = NULL;
    recorder.devices = NULL;
    recorder.annotations = NULL;
    memset(recorder.rings, 0, sizeof(recorder.rings));
    memset(recorder.extensions, 0, sizeof(recorder.extensions));
    memset(recorder.live_keys, 0, sizeof(recorder.live_keys));
    memset(recorder.tables, 0, sizeof(recorder.tables));
}

/* The file again, if it is still the one we made. */
int ring_file_reopen(void)
{
    int fd = open(recorder.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) /* not yet finished */
        fd = open(recorder.unfinished, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (fd >= 0 && (fstat(fd, &status) || status.st_dev != recorder.file_device ||
                    status.st_ino != recorder.file_inode)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

static void *map_memory(uint64_t size)
{
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

int ring_file_make_in_memory(void)
{
    uint64_t size = whole_pages(sizeof(struct ring_header));
    struct ring_header *header = map_memory(size);
    if (!header)
        return -1;
    recorder.in_memory = true;
    fill_header(header, size);
    recorder.header = header;
    return 0;
}

static void *append(uint64_t size, uint64_t *offset)
{
    struct ring_header *header = recorder.header;
    *offset = 0;
    if (recorder.in_memory)
        return map_memory(whole_pages(size));
    int fd = ring_file_reopen();
    if (fd < 0)
        return NULL;
    uint64_t start = header->file_size;
    void *map = MAP_FAILED;
    if (!take_space(fd, start, whole_pages(size)))
        map = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
    int error = errno;
    close(fd);
    errno = error;
    if (map == MAP_FAILED)
        return NULL;
    __atomic_store_n(&header->file_size, start + whole_pages(size), __ATOMIC_RELEASE);
    *offset = start;
    return map;
}

void *ring_file_append(uint64_t size, uint64_t *offset)
{
    uint64_t now = ticks_now();
    if (now < __atomic_load_n(&recorder.next_growth, __ATOMIC_RELAXED) || !lock_try(&recorder.grow_lock)) {
        errno = EAGAIN;
        return NULL;
    }
    int cancel = cancel_off();
    void *map = append(size, offset);
    int error = errno;
    cancel_as(cancel);
    if (!map) {
        recorder.header->grow_failures++;
        /* About a second; what asks meanwhile is counted as lost without asking the file system again. */
        __atomic_store_n(&recorder.next_growth, now + UINT64_C(2000000000), __ATOMIC_RELAXED);
    }
    lock_release(&recorder.grow_lock);
    if (!map && !recorder.in_memory && recorder_state() == RECORDER_READY)
        recorder_say("the recording is incomplete: its file cannot grow", recorder.path, error);
    errno = error;
    return map;
}

/* Where element `index` stands; NULL if its chunk is not there. */
void *ring_table_at(enum ring_table_name name, uint64_t index)
{
    const struct ring_table *table = &recorder.header->tables[name];
    uint64_t place;
    unsigned chunk = ring_table_chunk(index, table->first, &place);
    char *start = chunk < RING_TABLE_CHUNKS ? recorder.tables[name][chunk] : NULL;
    return start ? start + place * table->element : NULL;
}

static void *table_room(enum ring_table_name name, uint64_t index)
{
    struct ring_table *table = &recorder.header->tables[name];
    uint64_t place, offset;
    unsigned chunk = ring_table_chunk(index, table->first, &place);
    if (chunk >= RING_TABLE_CHUNKS) {
        errno = ENOSPC;
        return NULL;
    }
    if (!recorder.tables[name][chunk]) {
        void *map = ring_file_append(((uint64_t)table->first << chunk) * table->element, &offset);
        if (!map)
            return NULL;
        recorder.tables[name][chunk] = map;
        table->chunks[chunk] = offset;
    }
    return ring_table_at(name, index);
}

int64_t ring_table_add(enum ring_table_name name, const void *elements, uint64_t count)
{
    struct ring_table *table = &recorder.header->tables[name];
    uint64_t first = table->count;
    for (uint64_t i = 0; i < count; i++) {
        void *place = table_room(name, first + i);
        if (!place) {
            table->lost += count;
            return -1;
        }
        memcpy(place, (const char *)elements + i * table->element, table->element);
    }
    __atomic_store_n(&table->count, first + count, __ATOMIC_RELEASE);
    return (int64_t)first;
}
