/* Python's frames in a recording, of an interpreter that lies in this program (fake_python.h): walked, put into the file
 * once, mixed with native ones, and left alone where they are not what they should be. */
#include "ring_support.h"

#include "fake_python.h"
#include "record/internal.h"

static void start_with(bool native, unsigned depth)
{
    char message[256];
    struct recorder_options options = ring_options(0, depth);
    options.native_stacks = native;
    options.python_stacks = true;
    if (recorder_start(&options, message, sizeof(message)) || message[0])
        _exit(90);
}

static struct fake_thread fake_thread;

static void run_in(struct fake_frame *frame)
{
    fake_thread.frame = frame;
    fake_current = &fake_thread;
}

/* The Python frames of an entry's stack. */
static const char *python_stack(const struct snapshot *snapshot, size_t entry)
{
    static char text[65536];
    size_t used = 0;
    if (snapshot->entries.context[entry] == CONTEXT_NONE)
        return "none";
    text[0] = 0;
    uint32_t stack = snapshot_context_stack(snapshot, snapshot->entries.context[entry]);
    for (; stack != STACK_EMPTY; stack = snapshot->stacks[stack].parent) {
        const struct frame *frame = &snapshot->frames[snapshot->stacks[stack].frame];
        if (!(frame->flags & FRAME_PYTHON))
            continue;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%d:%s", used ? ";" : "",
                                 snapshot_object_text(snapshot, frame->filename, NULL), (int)frame->line,
                                 snapshot_object_text(snapshot, frame->name, NULL));
        assert_true(used < sizeof(text));
    }
    return text;
}

static const char *setting(const struct snapshot *snapshot)
{
    value content;
    if (!snapshot_get_setting(snapshot, "python_frames", &content))
        return "";
    return snapshot_object_text(snapshot, (uint32_t)value_payload(content), NULL);
}

/* --- frames ----------------------------------------------------------------------------------------------------------- */

static void record_frames(void *context)
{
    (void)context;
    struct fake_code *outer = fake_code("outer", "a.py", 10, 5), *inner = fake_code("inner", "b.py", 100, 3);
    struct fake_code *shim = fake_code("<shim>", "", 1, 8);
    shim->first_traceable = 4;
    start_with(false, 64);
    struct fake_frame *frame = fake_frame(outer, 2, fake_entry(NULL));
    run_in(frame);
    put_alloc(BASE, 4096);
    run_in(fake_frame(inner, 1, frame));
    put_alloc(BASE + 8192, 4096);
    run_in(fake_frame(inner, 2, fake_frame(shim, 1, frame)));
    put_alloc(BASE + 2 * 8192, 4096);
    struct fake_frame *generator = fake_frame(inner, 0, fake_entry(frame));
    generator->owner = OWNED_BY_GENERATOR;
    inner->first_traceable = 2;
    run_in(generator);
    put_alloc(BASE + 3 * 8192, 4096);
    run_in(fake_frame(inner, 2, fake_entry(fake_entry(frame))));
    put_alloc(BASE + 4 * 8192, 4096);
}

static void frames_of_3_14_are_found_by_what_it_tells_debuggers(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_frames, NULL);
    assert_string_equal(python_stack(snapshot, 0), "a.py:12:outer");
    assert_string_equal(python_stack(snapshot, 1), "b.py:101:inner;a.py:12:outer");
    assert_string_equal(python_stack(snapshot, 2), "b.py:102:inner;a.py:12:outer");
    assert_string_equal(python_stack(snapshot, 3), "b.py:100:inner;a.py:12:outer");
    assert_string_equal(python_stack(snapshot, 4), "b.py:102:inner;a.py:12:outer");
    assert_string_equal(setting(snapshot), "recorded (Python 3.14)");
    assert_int_equal(snapshot->frame_count, 4);
    snapshot_free(snapshot);
}

static void record_without_frames(void *context)
{
    (void)context;
    start_with(false, 64);
    put_alloc(BASE, 4096); /* no state: a thread that never ran Python */
    run_in(NULL);
    put_alloc(BASE + 8192, 4096);
    struct fake_frame *frame = fake_frame(fake_code("f", "a.py", 1, 1), 0, NULL);
    run_in(frame);
    _PyRuntime[FAKE_FINALIZING] = 0x1000; /* another thread ends the interpreter */
    put_alloc(BASE + 2 * 8192, 4096);
    _PyRuntime[FAKE_FINALIZING] = (uintptr_t)fake_current;
    put_alloc(BASE + 3 * 8192, 4096);
}

static void threads_without_frames_have_none(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_without_frames, NULL);
    assert_string_equal(python_stack(snapshot, 0), "none");
    assert_string_equal(python_stack(snapshot, 1), "");
    assert_string_equal(python_stack(snapshot, 2), "none");
    assert_string_equal(python_stack(snapshot, 3), "a.py:1:f");
    assert_int_equal(snapshot->processes[0].lost_stacks, 0);
    snapshot_free(snapshot);
}

/* --- up and down ------------------------------------------------------------------------------------------------------ */

#define WALKS 3000
#define CODES 6

static struct fake_code *walk_codes[CODES];
static struct fake_frame *the_frames[48];

/* The same walk in the child that records and in the parent that compares. */
static unsigned walk_step(unsigned depth, uint64_t *random)
{
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    unsigned keep = depth ? depth - (unsigned)(*random % 4 % (depth + 1)) : 0, more = (unsigned)(*random >> 8) % 5;
    if (keep && *random >> 16 & 1)
        the_frames[keep - 1]->instruction = ((struct fake_code *)(the_frames[keep - 1]->executable & ~UINT64_C(1)))->bytes +
                                             (*random >> 17 & 3);
    for (depth = keep; depth < keep + more && depth < 48; depth++) {
        struct fake_frame *previous = depth ? the_frames[depth - 1] : NULL;
        the_frames[depth] = fake_frame(walk_codes[(*random >> (20 + depth % 8)) % CODES], (int)(*random >> 30 & 3),
                                        *random >> (40 + depth % 8) & 1 ? fake_entry(previous) : previous);
    }
    return depth;
}

static void walk_prepare(void)
{
    static const char *const names[CODES] = {"zero", "one", "two", "three", "four", "five"};
    for (int i = 0; i < CODES; i++)
        walk_codes[i] = fake_code(names[i], i & 1 ? "odd.py" : "even.py", 10 * i, 4);
}

static void record_walks(void *context)
{
    const unsigned *limit = context;
    uint64_t random = 88172645463325252u;
    unsigned depth = 0;
    walk_prepare();
    start_with(false, *limit);
    for (uint64_t i = 0; i < WALKS; i++) {
        depth = walk_step(depth, &random);
        run_in(depth ? the_frames[depth - 1] : NULL);
        put_alloc(BASE + i * 8192, 4096);
    }
}

static void compare_walks(unsigned limit)
{
    struct snapshot *snapshot = recorded(record_walks, &limit);
    uint64_t random = 88172645463325252u;
    unsigned depth = 0;
    walk_prepare();
    for (size_t i = 0; i < WALKS; i++) {
        char wanted[8192] = "";
        size_t used = 0;
        depth = walk_step(depth, &random);
        for (unsigned n = depth; n-- > 0 && depth - n <= limit;) {
            struct fake_code *code = (void *)(the_frames[n]->executable & ~UINT64_C(1));
            used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s%s:%d:%s", used ? ";" : "",
                                     code->file->as.ascii,
                                     code->first_line + (int)(the_frames[n]->instruction - code->bytes),
                                     code->name->as.ascii);
        }
        assert_string_equal(python_stack(snapshot, i), wanted);
    }
    assert_int_equal(snapshot->processes[0].lost_stacks, 0);
    snapshot_free(snapshot);
}

static void stacks_that_change_in_part_are_right_in_all(void **state)
{
    (void)state;
    compare_walks(64);
}

static void no_more_frames_than_the_depth(void **state)
{
    (void)state;
    compare_walks(5);
}

/* --- code objects ------------------------------------------------------------------------------------------------------ */

static void record_reused(void *context)
{
    (void)context;
    fake_next_version = 0; /* they ran out, or this Python has none: the object's contents must tell */
    struct fake_code *code = fake_code("first", "a.py", 10, 4);
    struct fake_frame *frame = fake_frame(code, 1, NULL);
    start_with(false, 64);
    run_in(frame);
    put_alloc(BASE, 4096);
    code->name = fake_ascii("second");
    put_alloc(BASE + 8192, 4096);
    code->file = fake_ascii("b.py");
    put_alloc(BASE + 2 * 8192, 4096);
    code->first_line = 20;
    put_alloc(BASE + 3 * 8192, 4096);
    code->lines->data[3] = 0x80 | 12 << 3; /* in place, and no longer: nobody could tell */
    code->lines->length += 3;
    put_alloc(BASE + 4 * 8192, 4096);
    struct fake_text *name = code->name; /* other text at the same address */
    strcpy(name->as.ascii, "third");
    name->length = 5;
    put_alloc(BASE + 5 * 8192, 4096);
    name->hash++; /* as long as before */
    strcpy(name->as.ascii, "tenth");
    put_alloc(BASE + 6 * 8192, 4096);
    strcpy(code->file->as.ascii, "c.pz");
    put_alloc(BASE + 7 * 8192, 4096);
    code->lines->data[code->lines->length - 1] = 0x80;
    put_alloc(BASE + 8 * 8192, 4096);
}

static void another_code_object_at_the_same_address_is_told_apart(void **state)
{
    (void)state;
    static const char *const wanted[] = {"a.py:11:first", "a.py:11:second", "b.py:11:second", "b.py:21:second",
                                         "b.py:22:second", "b.py:22:third", "b.py:22:tenth", "c.pz:22:tenth",
                                         "c.pz:22:tenth"};
    struct snapshot *snapshot = recorded(record_reused, NULL);
    for (size_t i = 0; i < 9; i++)
        assert_string_equal(python_stack(snapshot, i), wanted[i]);
    snapshot_free(snapshot);
}

/* Nothing but the number that every code object has for itself says that this is another. */
static void record_versions(void *context)
{
    (void)context;
    struct fake_code *code = fake_code("first", "a.py", 10, 4);
    struct fake_frame *frame = fake_frame(code, 1, NULL);
    start_with(false, 64);
    run_in(frame);
    for (uint64_t i = 0; i < 3; i++) {
        put_alloc(BASE + i * 8192, 4096);
        code->version++;
        memcpy(code->name->as.ascii, i ? "third" : "other", 5);
    }
}

static void a_code_object_of_another_version_is_another(void **state)
{
    (void)state;
    static const char *const wanted[] = {"a.py:11:first", "a.py:11:other", "a.py:11:third"};
    struct snapshot *snapshot = recorded(record_versions, NULL);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(python_stack(snapshot, i), wanted[i]);
    snapshot_free(snapshot);
}

static void record_again_and_again(void *context)
{
    (void)context;
    start_with(false, 64);
    for (uint64_t i = 0; i < 5000; i++) {
        run_in(fake_frame(fake_code("made", "a.py", (int)(i % 10), 4), 1, NULL));
        put_alloc(BASE + i * 8192, 4096);
    }
    if (recorder.header->tables[RING_CODES].count != 10 || recorder.header->tables[RING_PYTHON_NODES].count != 10)
        _exit(1);
}

static void equal_code_objects_take_room_once(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_again_and_again, NULL);
    assert_int_equal(snapshot->frame_count, 10);
    assert_string_equal(python_stack(snapshot, 4999), "a.py:10:made");
    snapshot_free(snapshot);
}

static void record_texts(void *context)
{
    (void)context;
    static const uint8_t latin[] = {'g', 'r', 0xf6, 0xdf, 'e'};
    static const uint16_t two[] = {0x6f22, 0x5b57, 0xdc80, 'x'};
    static const uint32_t four[] = {0x1f600, 0x110000, 0x20ac};
    struct fake_code *code = fake_code("f", "a.py", 1, 1);
    start_with(false, 64);
    code->version = 0; /* what follows is in place */
    run_in(fake_frame(code, 0, NULL));
    code->name = fake_wide(latin, 5, 1);
    put_alloc(BASE, 4096);
    code->name = fake_wide(two, 4, 2);
    put_alloc(BASE + 8192, 4096);
    code->name = fake_wide(four, 3, 4);
    put_alloc(BASE + 2 * 8192, 4096);
    code->name = fake_memory(sizeof(*code->name));
    code->name->length = 4;
    code->name->state = STATE_OF(1, 0, 0);
    code->name->as.apart.data = "apart";
    put_alloc(BASE + 3 * 8192, 4096);
    static char longer[5000];
    memset(longer, 'n', sizeof(longer));
    code->name = fake_wide(longer, sizeof(longer), 1);
    put_alloc(BASE + 4 * 8192, 4096);
    code->name = fake_ascii("kind");
    code->name->state = STATE_OF(3, 1, 0); /* no such text */
    put_alloc(BASE + 5 * 8192, 4096);
}

static void texts_of_every_width_become_utf8(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_texts, NULL);
    assert_string_equal(python_stack(snapshot, 0), "a.py:1:gr\xc3\xb6\xc3\x9f" "e");
    assert_string_equal(python_stack(snapshot, 1), "a.py:1:\xe6\xbc\xa2\xe5\xad\x97\xef\xbf\xbdx");
    assert_string_equal(python_stack(snapshot, 2), "a.py:1:\xf0\x9f\x98\x80\xef\xbf\xbd\xe2\x82\xac");
    assert_string_equal(python_stack(snapshot, 3), "a.py:1:apar");
    assert_int_equal(strlen(python_stack(snapshot, 4)), strlen("a.py:1:") + 1024);
    assert_string_equal(python_stack(snapshot, 5), "none");
    assert_int_equal(snapshot->processes[0].lost_stacks, 1);
    snapshot_free(snapshot);
}

/* --- with native frames ------------------------------------------------------------------------------------------------ */

static struct fake_frame *mixed_outer, *mixed_inner;

static int allocate(void *context)
{
    (void)context;
    run_in(mixed_inner);
    put_alloc(BASE, 4096);
    __asm__ volatile("" ::: "memory");
    return 0;
}

static __attribute__((noinline)) int library(void *context)
{
    int result = _PyEval_EvalFrameDefault(allocate, context);
    __asm__ volatile("" ::: "memory");
    return result;
}

static __attribute__((noinline)) void program(void)
{
    _PyEval_EvalFrameDefault(library, NULL);
    __asm__ volatile("" ::: "memory");
}

static void record_mixed(void *context)
{
    (void)context;
    struct fake_code *code[4];
    for (int i = 0; i < 4; i++)
        code[i] = fake_code((const char *[]){"zero", "one", "two", "three"}[i], "a.py", i * 10, 4);
    mixed_outer = fake_frame(code[1], 1, fake_frame(code[0], 0, fake_entry(NULL)));
    mixed_inner = fake_frame(code[3], 3, fake_frame(code[2], 2, fake_entry(mixed_outer)));
    start_with(true, 64);
    run_in(mixed_outer);
    program();
    __asm__ volatile("" ::: "memory");
}

static const struct frame *frame_of(const struct snapshot *snapshot, size_t entry, unsigned n)
{
    uint32_t stack = snapshot_context_stack(snapshot, snapshot->entries.context[entry]);
    while (n-- && stack != STACK_EMPTY)
        stack = snapshot->stacks[stack].parent;
    return stack == STACK_EMPTY ? NULL : &snapshot->frames[snapshot->stacks[stack].frame];
}

int main(void);

/* The function here that an address lies in, with a space behind it; "" elsewhere.  They are short and may be neighbours. */
static const char *function_at(uint64_t at)
{
    const struct {
        uint64_t start;
        const char *name;
    } functions[] = {{(uintptr_t)library, "library "}, {(uintptr_t)program, "program "},
                     {(uintptr_t)_PyEval_EvalFrameDefault, "loop "}, {(uintptr_t)allocate, ""},
                     {(uintptr_t)record_mixed, ""}, {(uintptr_t)main, ""}};
    const char *name = "";
    uint64_t nearest = 256;
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        if (at <= functions[i].start || at - functions[i].start >= nearest)
            continue;
        nearest = at - functions[i].start;
        name = functions[i].name;
    }
    return name;
}

static void python_frames_stand_where_the_loop_that_ran_them_stood(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_mixed, NULL);
    char order[512] = "";
    for (unsigned n = 0; frame_of(snapshot, 0, n); n++) {
        const struct frame *frame = frame_of(snapshot, 0, n);
        const struct module *module = frame->module == NONE32 ? NULL : &snapshot->modules[frame->module];
        uint64_t at = module ? frame->offset + module->load_address : 0;
        if (frame->flags & FRAME_PYTHON)
            strcat(strcat(order, snapshot_object_text(snapshot, frame->name, NULL)), " ");
        else
            strcat(order, function_at(at));
    }
    assert_string_equal(order, "three two library one zero program ");
    assert_true(frame_of(snapshot, 0, 0)->flags & FRAME_NATIVE);
    snapshot_free(snapshot);
}

static void record_beside(void *context)
{
    (void)context;
    start_with(true, 64);
    run_in(fake_frame(fake_code("f", "a.py", 1, 1), 0, NULL));
    put_alloc(BASE, 4096); /* no loop in the native stack */
}

static void frames_whose_loop_is_not_there_come_last(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_beside, NULL);
    unsigned n = 0;
    while (frame_of(snapshot, 0, n + 1))
        assert_true(frame_of(snapshot, 0, n++)->flags & FRAME_NATIVE);
    assert_true(frame_of(snapshot, 0, n)->flags & FRAME_PYTHON);
    snapshot_free(snapshot);
}

/* --- what cannot be read ----------------------------------------------------------------------------------------------- */

static char said[4096];

/* In a child whose standard error is kept. */
static struct snapshot *recorded_saying(void (*body)(void *), void *context)
{
    int ends[2], kept = dup(2);
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    dup2(ends[1], 2);
    close(ends[1]);
    struct snapshot *snapshot = recorded(body, context);
    dup2(kept, 2);
    close(kept);
    ssize_t length = read(ends[0], said, sizeof(said) - 1);
    said[length < 0 ? 0 : length] = 0;
    close(ends[0]);
    return snapshot;
}

struct refusal {
    unsigned long version;
    int word; /* of the runtime's, changed to ... */
    uint64_t to;
    const char *message, *setting;
};

static void record_refused(void *context)
{
    const struct refusal *refusal = context;
    Py_Version = refusal->version;
    fake_offsets_of_3_14();
    if (refusal->word >= 0)
        _PyRuntime[refusal->word] = refusal->to;
    start_with(true, 64);
    fake_thread.elsewhere[0] = 0x10;
    run_in(fake_frame(fake_code("f", "a.py", 1, 1), 0, NULL));
    put_alloc(BASE, 4096);
    put_alloc(BASE + 8192, 4096);
}

static void versions_that_are_not_known_are_left_alone_with_a_line(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {0x030f00f0, -1, 0, "Python 3.15: not a version that is known\n", "none, not a version that is known (Python 3.15)"},
        {0x030e00a4, -1, 0, "Python 3.14: not a version that is known\n", "none, not a version that is known (Python 3.14)"},
        {0x030800f0, -1, 0, "Python 3.8: not a version that is known\n", "none, not a version that is known (Python 3.8)"},
        {0x030e00f0, 0, 1, "Python 3.14: not a version that is known\n", "none, not a version that is known (Python 3.14)"},
        {0x030e00f0, 1, 2, "Python 3.14: not a version that is known\n", "none, not a version that is known (Python 3.14)"},
        {0x030e00f0, 2, 1, "Python 3.14: a free-threaded build\n", "none, a free-threaded build (Python 3.14)"},
        {0x030e00f0, 51, 16, "Python 3.14: not a version that is known\n", "none, not a version that is known (Python 3.14)"},
        {0x030e00f0, 33, 1 << 20, "Python 3.14: not a version that is known\n",
         "none, not a version that is known (Python 3.14)"},
        /* Words in their places that lead elsewhere. */
        {0x030e00f0, 26, 0, "Python 3.14: its frames are not laid out as expected\n",
         "none, not laid out as expected (Python 3.14)"},
        {0x030e00f0, 33, 0, "Python 3.14: its frames are not laid out as expected\n",
         "none, not laid out as expected (Python 3.14)"},
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        struct refusal refusal = refusals[i];
        struct snapshot *snapshot = recorded_saying(record_refused, &refusal);
        assert_non_null(strstr(said, refusal.message));
        assert_ptr_equal(strchr(said, '\n') + 1, strchr(said, 0)); /* one line */
        assert_string_equal(setting(snapshot), refusal.setting);
        assert_int_equal(snapshot->entries.count, 2);
        assert_string_equal(python_stack(snapshot, 0), "");
        assert_non_null(frame_of(snapshot, 0, 2)); /* native frames are there */
        snapshot_free(snapshot);
    }
}

static void record_wild(void *context)
{
    struct fake_code *code = fake_code("f", "a.py", 1, 1);
    struct fake_frame *frame = fake_frame(code, 0, NULL);
    int what = *(int *)context;
    start_with(false, 64);
    run_in(frame);
    if (what == 0)
        run_in((void *)0x10);
    else if (what == 1)
        frame->previous = (void *)0x7fff00000010;
    else if (what == 2)
        frame->executable = 0x13;
    else if (what == 3)
        code->object.type = code;
    else if (what == 4)
        code->name = (void *)0x7fff00000010;
    put_alloc(BASE, 4096);
    put_alloc(BASE + 8192, 4096);
}

static void addresses_that_lead_nowhere_end_nobody(void **state)
{
    (void)state;
    for (int what = 0; what < 5; what++) {
        struct snapshot *snapshot = recorded_saying(record_wild, &what);
        assert_string_equal(said, "cudamem: no Python frames are recorded: Python 3.14: its frames are not laid out as "
                                  "expected\n");
        assert_int_equal(snapshot->entries.count, 2);
        assert_string_equal(python_stack(snapshot, 1), "none");
        snapshot_free(snapshot);
    }
}

static void record_circle(void *context)
{
    (void)context;
    struct fake_frame *frame = fake_frame(fake_code("f", "a.py", 1, 1), 0, NULL), *entry = fake_entry(NULL);
    frame->previous = frame;
    entry->previous = entry;
    start_with(false, 7);
    run_in(frame);
    put_alloc(BASE, 4096);
    run_in(entry);
    put_alloc(BASE + 8192, 4096);
}

static void circles_of_frames_end(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_circle, NULL);
    assert_string_equal(python_stack(snapshot, 0), "a.py:1:f;a.py:1:f;a.py:1:f;a.py:1:f;a.py:1:f;a.py:1:f;a.py:1:f");
    assert_string_equal(python_stack(snapshot, 1), "");
    snapshot_free(snapshot);
}

static void record_without_room(void *context)
{
    (void)context;
    start_with(false, 64);
    recorder.max_nodes = 3;
    for (int i = 0; i < 6; i++) {
        run_in(fake_frame(fake_code("f", "a.py", i, 1), 0, NULL));
        put_alloc(BASE + (uint64_t)i * 8192, 4096);
    }
}

static void a_full_table_makes_entries_without_a_stack_and_counts_them(void **state)
{
    (void)state;
    struct snapshot *snapshot = recorded(record_without_room, NULL);
    assert_string_equal(python_stack(snapshot, 2), "a.py:2:f");
    assert_string_equal(python_stack(snapshot, 3), "none");
    assert_int_equal(snapshot->processes[0].lost_stacks, 3);
    assert_int_equal(snapshot->entries.count, 6);
    snapshot_free(snapshot);
}

static int prepare(void **state)
{
    fake_offsets_of_3_14();
    return make_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_3_14_are_found_by_what_it_tells_debuggers),
        cmocka_unit_test(threads_without_frames_have_none),
        cmocka_unit_test(stacks_that_change_in_part_are_right_in_all),
        cmocka_unit_test(no_more_frames_than_the_depth),
        cmocka_unit_test(another_code_object_at_the_same_address_is_told_apart),
        cmocka_unit_test(a_code_object_of_another_version_is_another),
        cmocka_unit_test(equal_code_objects_take_room_once),
        cmocka_unit_test(texts_of_every_width_become_utf8),
        cmocka_unit_test(python_frames_stand_where_the_loop_that_ran_them_stood),
        cmocka_unit_test(frames_whose_loop_is_not_there_come_last),
        cmocka_unit_test(versions_that_are_not_known_are_left_alone_with_a_line),
        cmocka_unit_test(addresses_that_lead_nowhere_end_nobody),
        cmocka_unit_test(circles_of_frames_end),
        cmocka_unit_test(a_full_table_makes_entries_without_a_stack_and_counts_them),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
