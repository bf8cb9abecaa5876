/* Ring files that lie: read whole or refused with a sentence, never a crash (the sanitizers' build runs this, too). */
#include "ring_support.h"

#include "record/internal.h"

static unsigned char *original;
static size_t original_size;

/* Frames of Python as their recorder leaves them: three functions, and stacks of up to four frames for the events. */
static void add_python(void)
{
    static const char text[] = "f" "a.py" "\xd8\0\0\xe0\4\0\0";
    int64_t at = ring_table_add(RING_STRINGS, text, sizeof(text));
    for (uint32_t i = 0; i < 3; i++) {
        struct ring_code code = {(uint64_t)at, (uint64_t)at + 1, (uint64_t)at + 5, 1, 4, 7, (int32_t)i * 10};
        ring_table_add(RING_CODES, &code, 1);
    }
    for (uint32_t i = 0; i < 20; i++) {
        struct ring_python_node node = {i % 4 ? RING_STACK_FIRST + i - 1 : RING_STACK_EMPTY, i % 3, (int32_t)(i % 5) * 2 - 2,
                                        i % 2 ? RING_PYTHON_ENTRY : 0};
        ring_table_add(RING_PYTHON_NODES, &node, 1);
    }
    for (uint32_t i = 0; i < 50; i++)
        recorder.rings[0][i].python_stack = RING_STACK_FIRST + i % 20;
    recorder.header->python_version = 0x030c00f0;
    recorder.header->python_state = RING_PYTHON_RECORDED;
}

static void record_some(void *context)
{
    (void)context;
    start(64, 8);
    for (uint64_t i = 0; i < 40; i++) {
        struct record_event event = event_of(RECORD_SEGMENT_ALLOC, BASE + i * 8192, 4096 + i);
        event.pool = i % 5;
        event.requested = 4000;
        recorder_event(&event);
        if (i % 3 == 0)
            put_free(event.address);
    }
    for (uint64_t i = 0; i < 4; i++) {
        struct record_event event = event_of(RECORD_SEGMENT_ALLOC, (UINT64_C(1) << 56) + i * (2 << 20), 4096 + i);
        event.unmapped = true;
        recorder_event(&event);
    }
    for (uint64_t i = 0; i < 6; i++) {
        recorder_annotate(RECORD_RANGE_PUSH, (uint32_t)i % 2, 0, "a range", 7);
        recorder_annotate(RECORD_RANGE_START, 0, i + 1, "another", 7);
        recorder_annotate(RECORD_INSTANT, 0, 0, "", 0);
        recorder_annotate(RECORD_RANGE_END, 0, i + 1, NULL, 0);
        recorder_annotate(RECORD_RANGE_POP, (uint32_t)i % 2, 0, NULL, 0);
    }
    add_python();
    recorder_finish();
}

static int take_original(void **state)
{
    if (make_folder(state) || in_child(record_some, NULL))
        return -1;
    char path[600];
    if (each_file(copy_path, path) != 1)
        return -1;
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status))
        return -1;
    original_size = (size_t)status.st_size;
    original = malloc(original_size);
    bool is_read = original && fread(original, 1, original_size, file) == original_size;
    fclose(file);
    unlink(path);
    return is_read ? 0 : -1;
}

static int drop_original(void **state)
{
    free(original);
    return remove_folder(state);
}

static const char *damaged_path(void)
{
    static char path[600];
    snprintf(path, sizeof(path), "%s/damaged.ring", ring_folder);
    return path;
}

static int write_original(size_t length)
{
    int fd = open(damaged_path(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, original, length), length);
    return fd;
}

/* Read it; refused (with a message) or a snapshot that holds together.  True if refused. */
static bool try_to_read(struct error *err)
{
    struct snapshot *snapshot = NULL;
    memset(err, 0, sizeof(*err));
    int status = ring_read(damaged_path(), &snapshot, err);
    if (status) {
        assert_null(snapshot);
        assert_true(err->message[0] != 0);
        assert_true(status == STATUS_INPUT || status == STATUS_UNSUPPORTED || status == STATUS_NO_MEMORY);
        return true;
    }
    struct error invalid;
    assert_true(snapshot_is_valid(snapshot, &invalid));
    snapshot_free(snapshot);
    return false;
}

static void undamaged_file_is_read(void **state)
{
    (void)state;
    struct error err;
    close(write_original(original_size));
    assert_false(try_to_read(&err));
    unlink(damaged_path());
}

/* Flip a byte, try, put it back. */
static size_t flip_range(int fd, size_t from, size_t to, size_t step)
{
    size_t refused = 0;
    struct error err;
    for (size_t at = from; at < to; at += step) {
        unsigned char flipped = original[at] ^ 0xff;
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        refused += try_to_read(&err);
        assert_int_equal(pwrite(fd, &original[at], 1, (off_t)at), 1);
    }
    return refused;
}

static void every_byte_of_header_devices_and_tables_may_be_flipped(void **state)
{
    (void)state;
    const struct ring_header *header = (const void *)original;
    int fd = write_original(original_size);
    size_t texts = offsetof(struct ring_header, program), numbers = offsetof(struct ring_header, lock);
    assert_true(flip_range(fd, 0, texts, 1) > 20);
    flip_range(fd, texts, numbers, 97);
    assert_true(flip_range(fd, numbers, sizeof(*header), 1) > 20);
    flip_range(fd, header->devices, header->devices + 2 * sizeof(struct ring_device), 3);
    flip_range(fd, header->calls, header->calls + header->calls_size, 1);
    const struct ring_device *device = (const void *)(original + header->devices);
    assert_true(flip_range(fd, device->ring, device->ring + header->slots * sizeof(struct ring_slot), 5) > 0);
    flip_range(fd, header->live[0], header->live[0] + (size_t)RING_LIVE_FIRST * 80, 613);
    assert_int_equal(header->annotation_head, 30);
    size_t used = header->annotations + header->annotation_head * sizeof(struct ring_annotation);
    assert_true(flip_range(fd, header->annotations, used, 1) > 5);
    for (int table = 0; table < RING_TABLES; table++) {
        size_t at = header->tables[table].chunks[0];
        flip_range(fd, at, at + header->tables[table].count * header->tables[table].element, 7);
    }
    close(fd);
    unlink(damaged_path());
}

static void file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    struct error err;
    int fd = write_original(original_size);
    size_t refused = 0, tried = 0;
    for (size_t length = original_size - original_size % 512; length > 0; length -= 512) {
        assert_int_equal(ftruncate(fd, (off_t)length), 0);
        refused += try_to_read(&err);
        tried++;
    }
    assert_int_equal(refused + 1, tried); /* the first was whole */
    assert_int_equal(original_size % 512, 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_true(try_to_read(&err));
    close(fd);
    unlink(damaged_path());
}

static void patch(const void *bytes, size_t length, size_t offset)
{
    int fd = write_original(original_size);
    assert_int_equal(pwrite(fd, bytes, length, (off_t)offset), length);
    close(fd);
}

static void refusals_say_what_is_wrong(void **state)
{
    (void)state;
    struct error err;
    uint16_t newer = RING_MAJOR + 1;
    patch(&newer, sizeof(newer), offsetof(struct ring_header, major));
    assert_true(try_to_read(&err));
    assert_int_equal(err.status, STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "version 3.0"));
    uint64_t huge = UINT64_C(1) << 63;
    patch(&huge, sizeof(huge), offsetof(struct ring_header, slots));
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "number of entries"));
    patch(&huge, sizeof(huge), offsetof(struct ring_header, tables) + offsetof(struct ring_table, count));
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "stacks"));
    patch(&huge, sizeof(huge), offsetof(struct ring_header, live));
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "live memory"));
    uint32_t not_ready = 0;
    patch(&not_ready, sizeof(not_ready), offsetof(struct ring_header, ready));
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "not finished"));
    /* A stack that is its own caller. */
    const struct ring_header *header = (const void *)original;
    uint32_t self = RING_STACK_FIRST;
    patch(&self, sizeof(self), header->tables[RING_NODES].chunks[0]);
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "not linked"));
    patch(&self, sizeof(self), header->tables[RING_PYTHON_NODES].chunks[0]);
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "Python stack (number 2) that is not linked"));
    uint32_t many = 1000000;
    patch(&many, sizeof(many), header->tables[RING_PYTHON_NODES].chunks[0] + offsetof(struct ring_python_node, code));
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "of no function"));
    patch(&many, sizeof(many), header->tables[RING_CODES].chunks[0] + offsetof(struct ring_code, lines_length));
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "Python function (number 0)"));
    patch(&huge, sizeof(huge), offsetof(struct ring_header, tables) + RING_CODES * sizeof(struct ring_table));
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "Python's functions"));
    unlink(damaged_path());
}

/* One event with a stack of each kind, which come to `frames` native ones. */
static void record_deep(void *context)
{
    uint32_t frames = *(const uint32_t *)context;
    start(64, 8);
    put_alloc(BASE, 4096);
    add_python();
    struct ring_node node = {RING_STACK_EMPTY, RING_MODULE_UNKNOWN, 0x1000};
    for (uint32_t i = 0; i < frames; i++) {
        int64_t number = ring_table_add(RING_NODES, &node, 1);
        if (number < 0)
            _exit(1);
        node.parent = RING_STACK_FIRST + (uint32_t)number;
    }
    recorder.rings[0][0].stack = node.parent;
    recorder_finish();
}

static void stacks_deeper_than_a_recorder_takes_are_refused(void **state)
{
    (void)state;
    uint32_t frames = RING_DEPTH_MAX;
    struct error err = {0};
    struct snapshot *snapshot = recorded(record_deep, &frames);
    snapshot_free(snapshot);
    frames++;
    assert_int_equal(in_child(record_deep, &frames), 0);
    const char *path = only_file();
    assert_int_equal(ring_read(path, &snapshot, &err), STATUS_INPUT);
    assert_non_null(strstr(err.message, "too deep"));
    unlink(path);
}

static void only_regular_files_are_read(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(mkfifo(damaged_path(), 0600), 0);
    assert_true(try_to_read(&err)); /* and does not wait for a writer */
    assert_non_null(strstr(err.message, "regular"));
    unlink(damaged_path());
    assert_int_equal(mkdir(damaged_path(), 0700), 0);
    assert_true(try_to_read(&err));
    rmdir(damaged_path());
    assert_true(try_to_read(&err));
    assert_non_null(strstr(err.message, "No such file"));
    if (geteuid() == 0) {
        close(write_original(original_size));
        assert_int_equal(chown(damaged_path(), 12345, 12345), 0);
        assert_true(try_to_read(&err));
        assert_non_null(strstr(err.message, "another user"));
        unlink(damaged_path());
    }
}

static void random_damage_never_crashes(void **state)
{
    (void)state;
    struct error err;
    const struct ring_header *header = (const void *)original;
    const struct ring_device *device = (const void *)(original + header->devices);
    int fd = write_original(original_size);
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 1500; round++) {
        size_t places[6];
        for (int i = 0; i < 6; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            size_t base = i % 3 == 0 ? offsetof(struct ring_header, lock) : i % 3 == 1 ? header->devices : device->ring;
            places[i] = base + random % 1000;
            unsigned char byte = (unsigned char)(random >> 32);
            assert_int_equal(pwrite(fd, &byte, 1, (off_t)places[i]), 1);
        }
        try_to_read(&err);
        for (int i = 0; i < 6; i++)
            assert_int_equal(pwrite(fd, &original[places[i]], 1, (off_t)places[i]), 1);
    }
    close(fd);
    unlink(damaged_path());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undamaged_file_is_read),
        cmocka_unit_test(every_byte_of_header_devices_and_tables_may_be_flipped),
        cmocka_unit_test(file_cut_anywhere_is_refused),
        cmocka_unit_test(refusals_say_what_is_wrong),
        cmocka_unit_test(stacks_deeper_than_a_recorder_takes_are_refused),
        cmocka_unit_test(only_regular_files_are_read),
        cmocka_unit_test(random_damage_never_crashes),
    };
    return cmocka_run_group_tests(tests, take_original, drop_original);
}
