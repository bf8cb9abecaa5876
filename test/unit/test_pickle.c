/* The unpickling machine: every opcode, every refusal, damage at every place; and the columns that come out. */
#include "base/input.h"
#include "base/output.h"
#include "format/pickle_read.h"
#include "format/torch_read.h"
#include "format/torch_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zlib.h>

struct run {
    struct snapshot *snapshot;
    value top;
    int status;
    struct error err;
};

static struct run run_bytes(const void *bytes, size_t length)
{
    struct run run = {.snapshot = snapshot_new(SOURCE_TORCH)};
    struct input *input;
    assert_int_equal(input_from_memory(bytes, length, 0, &input, &run.err), 0);
    run.status = pickle_read(input, run.snapshot, NULL, NULL, &run.top, &run.err);
    input_close(input);
    return run;
}

#define RUN(literal) run_bytes(literal, sizeof(literal) - 1)

static void done(struct run *run)
{
    snapshot_free(run->snapshot);
}

/* A value as text, to compare with. */
static void show(const struct snapshot *snapshot, value v, char *out)
{
    size_t length;
    int64_t number;
    const char *open = "", *close = "";
    switch (value_kind(v)) {
    case VALUE_NONE: strcat(out, "None"); return;
    case VALUE_TRUE: strcat(out, "True"); return;
    case VALUE_FALSE: strcat(out, "False"); return;
    case VALUE_FLOAT: sprintf(out + strlen(out), "%g", values_get_float(snapshot->values, v)); return;
    case VALUE_STRING: sprintf(out + strlen(out), "'%s'", snapshot_object_text(snapshot, (uint32_t)value_payload(v), NULL)); return;
    case VALUE_INT:
    case VALUE_LONG:
        if (values_get_int(snapshot->values, v, &number)) {
            sprintf(out + strlen(out), "%lld", (long long)number);
        } else {
            const unsigned char *bytes = values_long_bytes(snapshot->values, v, &length);
            for (size_t i = 0; i < length; i++)
                sprintf(out + strlen(out), "%02x", bytes[i]);
        }
        return;
    case VALUE_BYTES:
    case VALUE_BYTEARRAY: {
        const unsigned char *bytes = values_get_bytes(snapshot->values, v, &length);
        sprintf(out + strlen(out), "%s'%.*s'", value_kind(v) == VALUE_BYTES ? "b" : "ba", (int)length, (const char *)bytes);
        return;
    }
    case VALUE_LIST: open = "[", close = "]"; break;
    case VALUE_TUPLE: open = "(", close = ")"; break;
    case VALUE_DICT: open = "{", close = "}"; break;
    case VALUE_SET: open = "set(", close = ")"; break;
    case VALUE_FROZENSET: open = "frozen(", close = ")"; break;
    default: strcat(out, "?"); return;
    }
    strcat(out, open);
    for (size_t i = 0; i < values_count(snapshot->values, v); i++) {
        strcat(out, i ? " " : "");
        show(snapshot, values_items(snapshot->values, v)[i], out);
    }
    strcat(out, close);
}

#define GIVES(literal, text) gives(literal, sizeof(literal) - 1, text, __LINE__)

static void gives(const char *bytes, size_t length, const char *text, int line)
{
    char shown[2000] = "";
    struct run run = run_bytes(bytes, length);
    if (run.status)
        fail_msg("line %d: %s", line, run.err.message);
    show(run.snapshot, run.top, shown);
    if (strcmp(shown, text) != 0)
        fail_msg("line %d: %s instead of %s", line, shown, text);
    done(&run);
}

#define REFUSES(literal, message, offset) refuses(literal, sizeof(literal) - 1, message, offset, __LINE__)

static void refuses(const char *bytes, size_t length, const char *message, uint64_t offset, int line)
{
    struct run run = run_bytes(bytes, length);
    if (!run.status)
        fail_msg("line %d: was read", line);
    if (!strstr(run.err.message, message))
        fail_msg("line %d: '%s' lacks '%s'", line, run.err.message, message);
    if (!run.err.has_offset || run.err.offset != offset)
        fail_msg("line %d: '%s' at byte %llu, not %llu", line, run.err.message, (unsigned long long)run.err.offset,
                 (unsigned long long)offset);
    done(&run);
}

static void opcodes_of_protocol_0_give_their_values(void **state)
{
    (void)state;
    GIVES("I42\n.", "42");
    GIVES("I-7\n.", "-7");
    GIVES("I01\n.", "True");
    GIVES("I00\n.", "False");
    GIVES("L123456789012345678901234567890L\n.", "d20a3f4eeee073c3f60fe98e01");
    GIVES("L-1L\n.", "-1");
    GIVES("L-340282366920938463463374607431768211456L\n.", "00000000000000000000000000000000ff");
    GIVES("L0\n.", "0");
    GIVES("F1.5\n.", "1.5");
    GIVES("F-inf\n.", "-inf");
    GIVES("S'it\\'s\\x41\\101\\n'\n.", "'it'sAA\n'");
    GIVES("S\"x\"\n.", "'x'");
    GIVES("Va\\u00e9\\U0001f600\\\\u0041\xe9\n.", "'a\xc3\xa9\xf0\x9f\x98\x80\\\\u0041\xc3\xa9'");
    GIVES("N.", "None");
    GIVES("(I1\nI2\nl.", "[1 2]");
    GIVES("(I1\nI2\nt.", "(1 2)");
    GIVES("(I1\nI2\nd.", "{1 2}");
    GIVES("(lp0\nI1\na(lp5\nag5\na.", "[1 [] []]");
    GIVES("(dp0\nVk\nI1\ns.", "{'k' 1}");
}

static void opcodes_of_protocols_1_and_2_give_their_values(void **state)
{
    (void)state;
    GIVES("K\xff.", "255");
    GIVES("M\xff\xff.", "65535");
    GIVES("J\xff\xff\xff\xff.", "-1");
    GIVES("G\xbf\xe0\0\0\0\0\0\0.", "-0.5");
    GIVES("U\x02hi.", "'hi'");
    GIVES("U\x01\xe9.", "'\xc3\xa9'");
    GIVES("T\x02\0\0\0hi.", "'hi'");
    GIVES("X\x02\0\0\0hi.", "'hi'");
    GIVES("](K\x01K\x02" "e.", "[1 2]");
    GIVES("}(K\x01K\x02K\x03K\x04u.", "{1 2 3 4}");
    GIVES(").", "()");
    GIVES("]q\x05h\x05\x86.", "([] [])");
    GIVES("]r\x05\0\0\0j\x05\0\0\0\x86.", "([] [])");
    GIVES("\x80\x02K\x01\x85.", "(1)");
    GIVES("K\x01K\x02\x86.", "(1 2)");
    GIVES("K\x01K\x02K\x03\x87.", "(1 2 3)");
    GIVES("\x88\x89\x86.", "(True False)");
    GIVES("\x8a\0.", "0");
    GIVES("\x8a\x03\x00\x00\x80.", "-8388608");
    GIVES("\x8a\x09\0\0\0\0\0\0\0\x80\0.", "000000000000008000");
    GIVES("\x8b\x02\0\0\0\x34\x12.", "4660");
    GIVES("K\x01" "2\x86.", "(1 1)");
    GIVES("K\x01K\x02" "0.", "1");
    GIVES("K\x01(K\x02K\x03" "1.", "1");
    GIVES("K\x05(0.", "5");
}

static void opcodes_of_protocols_3_to_5_give_their_values(void **state)
{
    (void)state;
    GIVES("\x80\x03" "C\x02hi.", "b'hi'");
    GIVES("B\x02\0\0\0hi.", "b'hi'");
    GIVES("\x80\x04\x95\x05\0\0\0\0\0\0\0\x8c\x02hi.", "'hi'");
    GIVES("\x8d\x02\0\0\0\0\0\0\0hi.", "'hi'");
    GIVES("\x8e\x02\0\0\0\0\0\0\0hi.", "b'hi'");
    GIVES("]\x94h\x00\x86.", "([] [])");
    GIVES("\x8f(K\x01K\x02\x90.", "set(1 2)");
    GIVES("(K\x01K\x02\x91.", "frozen(1 2)");
    GIVES("\x80\x05\x96\x02\0\0\0\0\0\0\0hi.", "ba'hi'");
}

static void harmless_classes_are_read_as_data(void **state)
{
    (void)state;
    GIVES("ccollections\nOrderedDict\n)RK\x01K\x02s.", "{1 2}");
    GIVES("\x8c\x0b" "collections\x8c\x0bOrderedDict\x93)RK\x01K\x02s.", "{1 2}");
    GIVES("ccollections\nOrderedDict\n(](](K\x01K\x02" "eetR.", "{1 2}");
    GIVES("ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01K\x02s.", "{1 2}");
    GIVES("ccollections\ndefaultdict\nN\x85R.", "{}");
    GIVES("ctorch\nSize\nK\x03K\x04\x86\x85R.", "(3 4)");
    GIVES("c__builtin__\nset\n](K\x01K\x02" "e\x85R.", "set(1 2)");
    GIVES("cbuiltins\nfrozenset\n](K\x01" "e\x85R.", "frozen(1)");
    GIVES("c_codecs\nencode\nX\x02\0\0\0\xc3\xa9X\x06\0\0\0latin1\x86R.", "b'\xe9'");
    GIVES("c__builtin__\nbytes\n)R.", "b''");
    GIVES("cbuiltins\nbytearray\nC\x02hi\x85R.", "ba'hi'");
    REFUSES("ctorch\nSize\n.", "damaged pickle", 12);
    REFUSES("](ctorch\nSize\ne.", "refuses a class as a value", 14);
    REFUSES("c__builtin__\nlist\n)R.", "REDUCE", 19);
    REFUSES("ctorch\nSize\nK\x01\x85R.", "REDUCE", 15);
    REFUSES("ccollections\nOrderedDict\nK\x01\x85R.", "REDUCE", 28);
    REFUSES("ccollections\nOrderedDict\n]K\x05" "a\x85R.", "REDUCE", 30);
    REFUSES("ccollections\ndefaultdict\nK\x01\x85R.", "REDUCE", 28);
    REFUSES("c_codecs\nencode\nX\x02\0\0\0\xe2\x82X\x06\0\0\0latin1\x86R.", "UTF-8", 16);
    REFUSES("c_codecs\nencode\nX\x01\0\0\0aX\x04\0\0\0zlib\x86R.", "REDUCE", 32);
}

static void what_names_code_is_refused_by_name(void **state)
{
    (void)state;
    REFUSES("cos\nsystem\n.", "refuses GLOBAL os.system", 0);
    REFUSES("\x8c\x02os\x8c\x06system\x93.", "refuses GLOBAL os.system", 12);
    REFUSES("K\x01K\x02\x93.", "STACK_GLOBAL", 4);
    REFUSES("K\x01)R.", "REDUCE", 3);
    REFUSES("(ios\nsystem\n.", "INST", 1);
    REFUSES("(o.", "OBJ", 1);
    REFUSES("))\x81.", "NEWOBJ:", 2);
    REFUSES(")))\x92.", "NEWOBJ_EX", 3);
    REFUSES("]]b.", "BUILD", 2);
    REFUSES("\x82\x01.", "EXT1", 0);
    REFUSES("\x83\x01\0.", "EXT2", 0);
    REFUSES("\x84\x01\0\0\0.", "EXT4", 0);
    REFUSES("Pid\n.", "PERSID", 0);
    REFUSES("K\x01Q.", "BINPERSID", 2);
    REFUSES("\x80\x05\x97.", "out-of-band buffers (opcode NEXT_BUFFER)", 2);
    REFUSES("\x80\x05]\x98.", "out-of-band buffers (opcode READONLY_BUFFER)", 3);
    REFUSES("\xff.", "no opcode 0xff", 0);
    struct run run = RUN("\x80\x06.");
    assert_int_equal(run.status, STATUS_UNSUPPORTED);
    assert_string_equal(run.err.message, "unsupported pickle protocol 6");
    done(&run);
}

static void damage_is_told_with_its_place(void **state)
{
    (void)state;
    REFUSES("", "cut short", 0);
    REFUSES("K\x01", "cut short", 2);
    REFUSES("K", "cut short", 1);
    REFUSES("X\x05\0\0\0abc", "cut short", 0);
    REFUSES("Vabc", "cut short", 0);
    REFUSES(".", "nothing", 0);
    REFUSES("K\x01K\x02.", "left over", 4);
    REFUSES("(.", "damaged pickle", 1);
    REFUSES("h\x05.", "memo number 5 was never set", 0);
    REFUSES("g99999999999999999999999\n.", "memo number", 0);
    REFUSES("gx\n.", "memo number", 0);
    REFUSES("p0\n.", "nothing to remember", 0);
    REFUSES("(\x94.", "nothing to remember", 1);
    REFUSES("K\x01" "a.", "run empty", 2);
    REFUSES("(K\x01" "a.", "run empty", 3);
    REFUSES("K\x01K\x02" "a.", "without a list", 4);
    REFUSES("]K\x01K\x02s.", "without a dict", 5);
    REFUSES("}(K\x01u.", "without a dict", 4);
    REFUSES("](K\x01\x90.", "without a set", 4);
    REFUSES("K\x01(K\x01u.", "without a dict", 5);
    REFUSES("e.", "never began", 0);
    REFUSES("(e.", "run empty", 1);
    REFUSES("0.", "run empty", 0);
    REFUSES("2.", "run empty", 0);
    REFUSES("(2.", "run empty", 1);
    REFUSES("K\x01(\x86.", "run empty", 3);
    REFUSES("R.", "run empty", 0);
    REFUSES("I1x\n.", "no integer", 0);
    REFUSES("I\n.", "no integer", 0);
    REFUSES("F1.5x\n.", "no number", 0);
    REFUSES("F\n.", "no number", 0);
    REFUSES("Sabc\n.", "no string", 0);
    REFUSES("S'abc\n.", "no string", 0);
    REFUSES("S'\\x4'\n.", "no string", 0);
    REFUSES("V\\u00\n.", "no text", 0);
    REFUSES("V\\U00110000\n.", "no text", 0);
    REFUSES("X\x01\0\0\0\xff.", "UTF-8", 0);
    REFUSES("X\x02\0\0\0\xc3(.", "UTF-8", 0);
    REFUSES("X\x01\0\0\0\xc3.", "UTF-8", 0);
    REFUSES("X\x03\0\0\0\xe0\x80\x80.", "UTF-8", 0);
    REFUSES("T\xff\xff\xff\xff.", "negative length", 0);
    REFUSES("\x8b\xff\xff\xff\xff.", "negative length", 0);
}

static void impossible_lengths_cost_nothing(void **state)
{
    (void)state;
    REFUSES("\x8d\0\0\0\0\0\0\0\x80x", "damaged pickle", 0);
    REFUSES("\x8e\xff\xff\xff\xff\xff\xff\xff\xffx", "damaged pickle", 0);
    REFUSES("\x96\xff\xff\xff\xff\xff\xff\xff\x7fx", "cut short", 10);
    REFUSES("X\xff\xff\xff\xff" "abc", "cut short", 8);
    REFUSES("\x8b\xff\xff\xff\x7f" "abc", "cut short", 8);
    REFUSES("\x95\0\0\0\0\0\0\0\x80.", "impossible length", 0);
    GIVES("\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", "None");
}

static void memo_numbers_far_out_cost_no_array(void **state)
{
    (void)state;
    GIVES("]p18446744073709551615\ng18446744073709551615\n\x86.", "([] [])");
    GIVES("]r\xff\xff\xff\xff" "j\xff\xff\xff\xff\x86.", "([] [])");
    /* every fourth number near the top: 12 bytes of table each, not 16 GiB */
    size_t count = 100000, length = 0;
    unsigned char *bytes = malloc(count * 5 + 16);
    bytes[length++] = ']';
    for (size_t i = 0; i < count; i++) {
        uint32_t number = UINT32_MAX - (uint32_t)i * 4;
        bytes[length++] = 'r';
        memcpy(bytes + length, &number, 4);
        length += 4;
    }
    bytes[length++] = '.';
    struct run run = run_bytes(bytes, length);
    assert_int_equal(run.status, 0);
    done(&run);
    free(bytes);
}

static void a_file_that_wants_too_much_memory_is_refused(void **state)
{
    (void)state;
    size_t count = 8000000;
    unsigned char *bytes = malloc(count);
    memset(bytes, ']', count);
    struct run run = run_bytes(bytes, count);
    assert_int_equal(run.status, STATUS_NO_MEMORY);
    assert_non_null(strstr(run.err.message, "more than twice their size"));
    assert_true(run.err.offset < 3000000);
    done(&run);
    memset(bytes, '2', count); /* one object, named again and again */
    bytes[0] = ']';
    run = run_bytes(bytes, count);
    assert_int_equal(run.status, STATUS_NO_MEMORY);
    done(&run);
    free(bytes);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    size_t depth = 100000;
    char *bytes = malloc(2 * depth + 2);
    memset(bytes, ']', depth);
    memset(bytes + depth, 'a', depth - 1);
    bytes[2 * depth - 1] = '.';
    struct run run = run_bytes(bytes, 2 * depth);
    assert_non_null(strstr(run.err.message, "nested more than"));
    done(&run);
    memset(bytes, '(', depth);
    run = run_bytes(bytes, depth);
    assert_non_null(strstr(run.err.message, "nested more than"));
    done(&run);
    for (size_t i = 0; i < depth; i++)
        bytes[i + 1] = (char)0x85;
    bytes[0] = 'N';
    bytes[depth + 1] = '.';
    run = run_bytes(bytes, depth + 2);
    assert_non_null(strstr(run.err.message, "nested more than"));
    done(&run);
    free(bytes);
}

static void long_strings_and_bytes_come_in_pieces(void **state)
{
    (void)state;
    for (size_t length = 65000; length < 1400000; length = length * 2 + 1) {
        unsigned char *bytes = malloc(length + 30);
        uint64_t size = length;
        bytes[0] = 0x8d;
        memcpy(bytes + 1, &size, 8);
        memset(bytes + 9, 'x', length);
        bytes[9 + length / 2] = 'y';
        bytes[9 + length] = '.';
        struct run run = run_bytes(bytes, length + 10);
        size_t got = 0;
        assert_int_equal(run.status, 0);
        const char *text = snapshot_object_text(run.snapshot, (uint32_t)value_payload(run.top), &got);
        assert_int_equal(got, length);
        assert_memory_equal(text, bytes + 9, length);
        done(&run);
        run = run_bytes(bytes, length + 8);
        assert_non_null(strstr(run.err.message, "cut short"));
        done(&run);
        free(bytes);
    }
}

/* ---- snapshots ---- */

static unsigned char *read_data(const char *name, size_t *length)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", getenv("CUDAMEM_TEST_DATA") ? getenv("CUDAMEM_TEST_DATA") : TEST_DATA, name);
    gzFile file = gzopen(path, "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(4 << 20);
    int got = gzread(file, bytes, 4 << 20);
    assert_true(got > 0);
    gzclose(file);
    *length = (size_t)got;
    return bytes;
}

static int read_torch(const void *bytes, size_t length, bool general, struct snapshot **snapshot, struct error *err)
{
    struct torch_read_options options = {.no_fast_path = general};
    struct input *input;
    assert_int_equal(input_from_memory(bytes, length, 0, &input, err), 0);
    int status = torch_read(input, &options, snapshot, err);
    input_close(input);
    assert_int_equal(status != 0, *snapshot == NULL);
    return status;
}

static unsigned char *write_torch(const struct snapshot *snapshot, size_t *length)
{
    struct error err = {0};
    struct output *output;
    unsigned char *bytes = NULL;
    assert_int_equal(output_to_memory(&bytes, length, &output, &err), 0);
    assert_int_equal(torch_write(snapshot, output, &err), 0);
    assert_int_equal(output_commit(output, &err), 0);
    return bytes;
}

static void a_real_file_fills_the_columns(void **state)
{
    (void)state;
    size_t length;
    struct error err = {0};
    struct snapshot *snapshot;
    unsigned char *bytes = read_data("mempool_oom.pickle.gz", &length);
    assert_int_equal(read_torch(bytes, length, false, &snapshot, &err), 0);
    assert_int_equal(snapshot->entries.count, 31);
    assert_int_equal(snapshot->end.segment_count, 9);
    assert_int_equal(snapshot->trace_count, 1);
    assert_int_equal(snapshot->end.moment, 31);
    assert_false(snapshot->has_raw);
    assert_int_equal(snapshot->odd_count, 0);
    uint64_t reserved = 0, active = 0, blocks = 0;
    for (size_t i = 0; i < snapshot->end.segment_count; i++) {
        reserved += snapshot->end.segments[i].total_size;
        active += snapshot->end.segments[i].active_size;
        for (uint32_t k = 0; k < snapshot->end.segments[i].block_count; k++) {
            const struct block *block = &snapshot->end.blocks[snapshot->end.segments[i].first_block + k];
            blocks += block->state != BLOCK_INACTIVE ? block->size : 0;
        }
    }
    assert_int_equal(active, blocks);
    assert_true(reserved > active);
    value content;
    assert_true(snapshot_get_setting(snapshot, "max_split_size", &content));
    assert_true(content == values_int(snapshot->values, -1));
    snapshot_free(snapshot);
    free(bytes);
}

static void skipped_traces_leave_the_segments_as_they_are(void **state)
{
    (void)state;
    size_t length;
    struct error err = {0};
    struct snapshot *all, *segments;
    struct input *input;
    unsigned char *bytes = read_data("train.pickle.gz", &length);
    assert_int_equal(read_torch(bytes, length, false, &all, &err), 0);
    struct torch_read_options options = {.skip_traces = true};
    assert_int_equal(input_from_memory(bytes, length, 0, &input, &err), 0);
    assert_int_equal(torch_read(input, &options, &segments, &err), 0);
    input_close(input);
    assert_int_equal(all->entries.count, 4395);
    assert_int_equal(segments->entries.count, 0);
    assert_int_equal(segments->trace_count, 1);
    assert_int_equal(segments->end.segment_count, all->end.segment_count);
    assert_memory_equal(segments->end.segments, all->end.segments, all->end.segment_count * sizeof(struct segment));
    assert_int_equal(segments->end.block_count, all->end.block_count);
    assert_memory_equal(segments->end.blocks, all->end.blocks, all->end.block_count * sizeof(struct block));
    assert_int_equal(segments->setting_count, all->setting_count);
    snapshot_free(all);
    snapshot_free(segments);
    free(bytes);
}

static void writing_twice_gives_the_same_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"frag.pickle.gz", "train.pickle.gz", "leak_after.pickle.gz"};
    for (size_t i = 0; i < 3; i++) {
        size_t length, once_length, twice_length;
        struct error err = {0};
        struct snapshot *first, *second;
        unsigned char *bytes = read_data(names[i], &length);
        assert_int_equal(read_torch(bytes, length, false, &first, &err), 0);
        unsigned char *once = write_torch(first, &once_length);
        assert_int_equal(read_torch(once, once_length, true, &second, &err), 0);
        unsigned char *twice = write_torch(second, &twice_length);
        assert_int_equal(once_length, twice_length);
        assert_memory_equal(once, twice, once_length);
        assert_true(once[0] == 0x80 && once[1] == 4);
        snapshot_free(first);
        snapshot_free(second);
        free(bytes);
        free(once);
        free(twice);
    }
}

/* A small snapshot with a bit of everything. */
static unsigned char *small_snapshot(size_t *length)
{
    static const char segments[] =
        "\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94(\x8c\x08segments\x94]\x94}\x94(\x8c\x06" "device\x94K\0\x8c\x07" "address\x94"
        "\x8a\x06\0\0\0\0\0\x7f\x8c\x0atotal_size\x94J\0\0 \0\x8c\x0fsegment_pool_id\x94K\0K\0\x86\x94\x8c\x06" "frames\x94"
        "]\x94\x8c\x06" "blocks\x94]\x94}\x94(h\x05\x8a\x06\0\0\0\0\0\x7f\x8c\x04size\x94M\0\x02\x8c\x05state\x94\x8c\x08"
        "inactive\x94h\x09h\x0auauaX\x0d\0\0\0" "device_traces\x94]\x94]\x94";
    static const char first[] = "(}\x94(\x8c\x06" "action\x94\x8c\x05" "alloc\x94\x8c\x04" "addr\x94K\x05\x8c\x04size\x94M\0\x02"
        "\x8c\x06stream\x94K\0\x8c\x07time_us\x94\x8a\x07\xcc\x90\xfe\x99\x87" "a\x06\x8c\x0f" "compile_context\x94\x8c\x03N/A\x94"
        "\x8c\x06" "frames\x94]\x94}\x94(\x8c\x04name\x94\x8c\x01" "f\x94\x8c\x04line\x94K\x07uau";
    struct output *output;
    struct error err = {0};
    unsigned char *bytes = NULL;
    assert_int_equal(output_to_memory(&bytes, length, &output, &err), 0);
    output_write(output, segments, sizeof(segments) - 1);
    output_write(output, first, sizeof(first) - 1);
    output_text(output, "eau.");
    assert_int_equal(output_commit(output, &err), 0);
    /* written by ourselves, so that the rest of the fields is there as well */
    struct snapshot *snapshot;
    int status = read_torch(bytes, *length, false, &snapshot, &err);
    if (status)
        fail_msg("%s at %llu", err.message, (unsigned long long)err.offset);
    assert_int_equal(snapshot->entries.count, 1);
    free(bytes);
    for (int i = 0; i < 3; i++) {
        struct entry entry = snapshot_entry(snapshot, 0);
        entry.time += i;
        assert_int_equal(snapshot_add_entry(snapshot, &entry), 0);
    }
    bytes = write_torch(snapshot, length);
    snapshot_free(snapshot);
    return bytes;
}

static void cut_anywhere_a_file_is_refused(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = small_snapshot(&length);
    for (size_t cut = 0; cut < length; cut++) {
        struct error err = {0};
        struct snapshot *snapshot;
        unsigned char *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees one byte too far */
        memcpy(exact, bytes, cut);
        assert_true(read_torch(exact, cut, cut % 2, &snapshot, &err) != 0);
        assert_non_null(strstr(err.message, "cut short"));
        free(exact);
    }
    free(bytes);
}

/* Every kind of object in several places: entries, a trace, segments, blocks, a list of blocks, an annotation. */
static const char shared_file[] =
    "\x80\x04}(Vdevice_traces\n](]\x94("                                      /* 0: a trace */
    "}\x94(Vaction\n\x94Valloc\n\x94Vaddr\n\x94K\x05Vsize\n\x94K\x06"         /* 1: an entry; 2 to 8: its words */
    "Vstream\n\x94K\0Vtime_us\n\x94K\x07Vpool_id\n\x94K\0K\1\x86\x94Vmore\n]u"
    "}\x94(h\x02h\x03h\x04K\x08h\x05K\x06h\x06K\0h\x07K\x09u"                /* 10 and 11: entries of the fast path */
    "}\x94(h\x02h\x03h\x04K\x09h\x05K\x06h\x06K\0h\x07K\x0au"
    "h\x01h\x0bh\x01h\x0a" "e"
    "h\0" "](h\x0ah\x01" "ee"                                                /* the trace again; a third begins with 10 */
    "Vsegments\n](}\x94(Vaddress\n\x94K\0Vtotal_size\n\x94M\0\x10Vblocks\n\x94]\x94(" /* 12: a segment; 16: its blocks */
    "}\x94(h\x05M\0\x02Vstate\n\x94Vinactive\n\x94Vframes\n]u}(h\x05M\0\x02h\x12h\x13ueu"    /* 17: a block */
    "}(h\x0dK\0h\x0eM\0\x10h\x0fh\x10u"
    "}(h\x0dK\0h\x0eM\0\x10h\x0f](h\x11h\x11" "euh\x0c" "e"
    "Vexternal_annotations\n](}\x94(Vstage\nVSTART\nVname\nVn\nh\x07K\x01u}(Vstage\nVEND\nuh\x14h\x01" "eu.";

/* With enough behind its end (which is left alone) for the fast path to run. */
static unsigned char *shared_snapshot(size_t *length)
{
    *length = sizeof(shared_file) - 1 + 1024;
    unsigned char *bytes = calloc(*length, 1);
    memcpy(bytes, shared_file, sizeof(shared_file) - 1);
    return bytes;
}

static void what_is_named_again_stands_in_the_columns_again(void **state)
{
    (void)state;
    static const uint8_t addresses[] = {5, 8, 9, 5, 9, 5, 8, 8, 5, 5, 8, 9, 5, 9, 5, 8};
    static const uint8_t devices[] = {0, 0, 0, 0, 0, 0, 0, 2, 2, 1, 1, 1, 1, 1, 1, 1};
    size_t length;
    unsigned char *bytes = shared_snapshot(&length);
    for (int general = 0; general < 2; general++) {
        struct error err = {0};
        struct snapshot *snapshot;
        value more;
        int status = read_torch(bytes, length, general, &snapshot, &err);
        if (status)
            fail_msg("%s at %llu", err.message, (unsigned long long)err.offset);
        assert_true(snapshot->has_raw);
        assert_int_equal(snapshot->entries.count, 16);
        for (size_t i = 0; i < 16; i++) {
            assert_int_equal(snapshot->entries.address[i], addresses[i]);
            assert_int_equal(snapshot->entries.device[i], devices[i]);
            assert_int_equal(snapshot_get_odd(snapshot, ROW_ENTRY, i, 6, &more), addresses[i] == 5);
        }
        assert_int_equal(snapshot->end.segment_count, 4);
        assert_int_equal(snapshot->end.block_count, 8);
        for (size_t i = 0; i < 8; i++) {
            assert_int_equal(snapshot->end.blocks[i].address, i % 2 * 512);
            assert_int_equal(snapshot->end.blocks[i].context, i % 2 && i != 5 ? CONTEXT_NONE : 0);
        }
        assert_int_equal(snapshot->annotation_count, 4);
        assert_int_equal(snapshot->annotations[2].time, 1);
        assert_int_equal(snapshot->annotations[3].time, 7);
        snapshot_free(snapshot);
    }
    free(bytes);
}

static void what_is_named_again_is_no_entry_where_traces_are_skipped(void **state)
{
    (void)state;
    struct error err = {0};
    struct snapshot *snapshot;
    struct input *input;
    struct torch_read_options options = {.skip_traces = true};
    assert_int_equal(input_from_memory(shared_file, sizeof(shared_file) - 1, 0, &input, &err), 0);
    assert_int_equal(torch_read(input, &options, &snapshot, &err), 0);
    input_close(input);
    assert_int_equal(snapshot->entries.count, 0);
    assert_int_equal(snapshot->trace_count, 3);
    assert_int_equal(snapshot->end.segment_count, 4);
    assert_int_equal(snapshot->end.block_count, 8);
    snapshot_free(snapshot);
}

/* A trace with an entry named `count` times over, of two devices. */
static unsigned char *many_times(size_t count, size_t *length)
{
    static const char first[] = "\x80\x04}(Vdevice_traces\n](]\x94(}\x94(Vaction\nValloc\nVaddr\nK\x05Vsize\nK\x06u";
    static const char last[] = "eh\0" "eu.";
    unsigned char *bytes = malloc(sizeof(first) + 2 * count + sizeof(last));
    memcpy(bytes, first, sizeof(first) - 1);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + sizeof(first) - 1 + 2 * i, "h\x01", 2);
    memcpy(bytes + sizeof(first) - 1 + 2 * count, last, sizeof(last) - 1);
    *length = sizeof(first) + sizeof(last) - 2 + 2 * count;
    return bytes;
}

static void naming_again_counts_against_the_limit_on_decoded_bytes(void **state)
{
    (void)state;
    size_t length, count = 1000000;
    unsigned char *bytes = many_times(count, &length);
    for (uint64_t limit = 64; limit <= 256; limit += 192) {
        struct error err = {0};
        struct snapshot *snapshot;
        struct input *input;
        assert_int_equal(input_from_memory(bytes, length, limit << 20, &input, &err), 0);
        int status = torch_read(input, NULL, &snapshot, &err);
        input_close(input);
        if (limit == 64) {
            assert_int_equal(status, STATUS_NO_MEMORY);
            assert_non_null(strstr(err.message, "more than the limit of 64.00 MiB; allow more with --max-input SIZE"));
            continue;
        }
        assert_int_equal(status, 0);
        assert_int_equal(snapshot->entries.count, 2 * (count + 1));
        snapshot_free(snapshot);
    }
    free(bytes);
}

static void every_flipped_bit_is_refused_or_gives_valid_data(unsigned char *bytes, size_t length, size_t flipped)
{
    for (size_t bit = 0; bit < 8 * flipped; bit++) {
        struct error err = {0};
        struct snapshot *snapshot, *again;
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        int status = read_torch(bytes, length, false, &snapshot, &err);
        struct snapshot *general;
        assert_int_equal(read_torch(bytes, length, true, &general, &err), status);
        if (status) {
            assert_true(err.message[0] != '\0');
        } else {
            size_t written, other;
            assert_true(snapshot_is_valid(snapshot, &err));
            unsigned char *out = write_torch(snapshot, &written), *out_general = write_torch(general, &other);
            assert_int_equal(written, other);
            assert_memory_equal(out, out_general, written);
            assert_int_equal(read_torch(out, written, false, &again, &err), 0);
            snapshot_free(again);
            free(out);
            free(out_general);
        }
        snapshot_free(snapshot);
        snapshot_free(general);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

static void a_flipped_bit_is_refused_or_gives_valid_data(void **state)
{
    (void)state;
    size_t length;
    unsigned char *bytes = small_snapshot(&length);
    every_flipped_bit_is_refused_or_gives_valid_data(bytes, length, length);
    free(bytes);
    bytes = shared_snapshot(&length);
    every_flipped_bit_is_refused_or_gives_valid_data(bytes, length, sizeof(shared_file) - 1);
    free(bytes);
}

static void a_recorded_snapshot_is_written_in_the_layout_of_2_11(void **state)
{
    (void)state;
    struct error err = {0};
    struct snapshot *recorded = snapshot_new(SOURCE_RECORDED), *read;
    recorded->processes[0].implied_blocks = true;
    struct frame frame = {.name = STRING_NONE, .filename = STRING_NONE, .offset = 0x1234, .flags = FRAME_NATIVE};
    struct module module = {.path = snapshot_string(recorded, "/opt/lib/libapp.so", 18)};
    frame.module = snapshot_add_module(recorded, &module);
    uint32_t unknown = snapshot_add_frame(recorded, &frame);
    frame.name = snapshot_shared_string(recorded, "main", 4);
    frame.filename = snapshot_shared_string(recorded, "main.c", 6);
    frame.line = 12;
    uint32_t context = snapshot_add_context(
        recorded, snapshot_push_frame(recorded, snapshot_push_frame(recorded, STACK_EMPTY, snapshot_add_frame(recorded, &frame)), unknown));
    struct entry entry;
    entry_init(&entry);
    entry.action = ACTION_SEGMENT_ALLOC;
    entry.address = UINT64_C(0xf000000000000000);
    entry.size = 4096;
    entry.time = 5;
    entry.context = context;
    assert_int_equal(snapshot_add_entry(recorded, &entry), 0);
    entry.action = ACTION_SEGMENT_FREE;
    entry.context = CONTEXT_NONE;
    assert_int_equal(snapshot_add_entry(recorded, &entry), 0);
    entry.action = ACTION_OOM;
    entry.device = 2;
    entry.address = 77;
    assert_int_equal(snapshot_add_entry(recorded, &entry), 0);
    struct segment segment = {.address = 8192, .total_size = 4096, .active_size = 4096, .allocated_size = 4096, .requested_size = 4000,
                              .context = context, .pool = NONE32, .is_large = true};
    struct block block = {.address = 8192, .size = 4096, .requested = 4000, .context = CONTEXT_NONE, .state = BLOCK_ACTIVE_ALLOCATED};
    assert_int_equal(state_add_segment(&recorded->end, &segment), 0);
    assert_int_equal(state_add_block(&recorded->end, &block), 0);
    snapshot_device(recorded, 0, 0);

    size_t length;
    unsigned char *bytes = write_torch(recorded, &length);
    assert_int_equal(read_torch(bytes, length, false, &read, &err), 0);
    static const enum action actions[] = {ACTION_SEGMENT_ALLOC, ACTION_ALLOC, ACTION_FREE_REQUESTED, ACTION_FREE_COMPLETED,
                                          ACTION_SEGMENT_FREE, ACTION_OOM};
    assert_int_equal(read->entries.count, 6);
    assert_int_equal(read->trace_count, 3);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(read->entries.action[i], actions[i]);
    assert_true(read->entries.address[0] == UINT64_C(0xf000000000000000));
    assert_int_equal(read->entries.context[0], read->entries.context[1]);
    assert_int_equal(read->entries.context[2], CONTEXT_NONE);
    assert_int_equal(read->entries.device[5], 2);
    const struct stack_node *node = &read->stacks[read->contexts[read->entries.context[0]]];
    assert_string_equal(snapshot_object_text(read, read->frames[node->frame].name, NULL), "libapp.so+0x1234");
    assert_string_equal(snapshot_object_text(read, read->frames[node->frame].filename, NULL), "/opt/lib/libapp.so");
    node = &read->stacks[node->parent];
    assert_string_equal(snapshot_object_text(read, read->frames[node->frame].name, NULL), "main");
    assert_int_equal(read->frames[node->frame].line, 12);
    assert_int_equal(read->end.segment_count, 1);
    assert_int_equal(read->end.segments[0].requested_size, 4000);
    static const uint32_t keys[] = {FIELD_DEVICE, FIELD_ADDRESS, FIELD_TOTAL_SIZE, FIELD_ALLOCATED_SIZE, FIELD_ACTIVE_SIZE,
                                    FIELD_REQUESTED_SIZE, FIELD_STREAM, FIELD_SEGMENT_TYPE, FIELD_SEGMENT_POOL_ID,
                                    FIELD_IS_EXPANDABLE, FIELD_BLOCKS, FIELD_FRAMES};
    const struct shape *shape = &read->shapes[read->end.segments[0].shape];
    assert_int_equal(shape->count, 12);
    assert_memory_equal(shape->keys, keys, sizeof(keys));
    assert_int_equal(read->setting_count, 9);
    free(bytes);
    snapshot_free(recorded);
    snapshot_free(read);
}

static void an_empty_recording_is_an_empty_snapshot(void **state)
{
    (void)state;
    struct error err = {0};
    struct snapshot *recorded = snapshot_new(SOURCE_RECORDED), *read;
    size_t length;
    unsigned char *bytes = write_torch(recorded, &length);
    assert_int_equal(read_torch(bytes, length, false, &read, &err), 0);
    assert_int_equal(read->entries.count + read->end.segment_count + read->annotation_count, 0);
    free(bytes);
    snapshot_free(recorded);
    snapshot_free(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opcodes_of_protocol_0_give_their_values),
        cmocka_unit_test(opcodes_of_protocols_1_and_2_give_their_values),
        cmocka_unit_test(opcodes_of_protocols_3_to_5_give_their_values),
        cmocka_unit_test(harmless_classes_are_read_as_data),
        cmocka_unit_test(what_names_code_is_refused_by_name),
        cmocka_unit_test(damage_is_told_with_its_place),
        cmocka_unit_test(impossible_lengths_cost_nothing),
        cmocka_unit_test(memo_numbers_far_out_cost_no_array),
        cmocka_unit_test(a_file_that_wants_too_much_memory_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(long_strings_and_bytes_come_in_pieces),
        cmocka_unit_test(a_real_file_fills_the_columns),
        cmocka_unit_test(skipped_traces_leave_the_segments_as_they_are),
        cmocka_unit_test(writing_twice_gives_the_same_bytes),
        cmocka_unit_test(what_is_named_again_stands_in_the_columns_again),
        cmocka_unit_test(what_is_named_again_is_no_entry_where_traces_are_skipped),
        cmocka_unit_test(naming_again_counts_against_the_limit_on_decoded_bytes),
        cmocka_unit_test(cut_anywhere_a_file_is_refused),
        cmocka_unit_test(a_flipped_bit_is_refused_or_gives_valid_data),
        cmocka_unit_test(a_recorded_snapshot_is_written_in_the_layout_of_2_11),
        cmocka_unit_test(an_empty_recording_is_an_empty_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
