/* Texts of frames for the views.  Uses src/snapshot and src/base. */
#include "analyze/frame_text.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct frame_texts {
    const struct snapshot *snapshot;
    struct strings *labels;
    uint32_t *by_frame; /* label + 2, 1 for left out, 0 for not made yet */
    struct text scratch;
    bool failed;
};

struct piece {
    const char *bytes;
    size_t length;
};

struct frame_texts *frame_texts_new(const struct snapshot *snapshot)
{
    struct frame_texts *texts = calloc(1, sizeof(*texts));
    if (!texts)
        return NULL;
    texts->snapshot = snapshot;
    texts->labels = strings_new();
    texts->by_frame = calloc(snapshot->frame_count + 1, sizeof(*texts->by_frame));
    if (texts->labels && texts->by_frame)
        return texts;
    frame_texts_free(texts);
    return NULL;
}

void frame_texts_free(struct frame_texts *texts)
{
    if (!texts)
        return;
    strings_free(texts->labels);
    free(texts->by_frame);
    text_free(&texts->scratch);
    free(texts);
}

const struct snapshot *frame_texts_snapshot(const struct frame_texts *texts)
{
    return texts->snapshot;
}

bool frame_texts_failed(const struct frame_texts *texts)
{
    return texts->failed || text_failed(&texts->scratch);
}

const char *frame_label_text(const struct frame_texts *texts, uint32_t label, size_t *length)
{
    if (length)
        *length = strings_length(texts->labels, label);
    return strings_text(texts->labels, label);
}

uint32_t frame_label_count(const struct frame_texts *texts)
{
    return strings_count(texts->labels);
}

uint32_t frame_label_of_text(struct frame_texts *texts, const char *bytes, size_t length)
{
    uint32_t label = strings_intern(texts->labels, bytes, length);
    if (label == STRING_NONE)
        texts->failed = true;
    return label;
}

static bool contains(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word)) != NULL;
}

bool frame_is_shown(const char *name, size_t name_length, const char *filename, size_t filename_length)
{
    static const char *const names[] = {"unwind::unwind",    "CapturedTraceback::gather",
                                        "gather_with_cpp",   "_start",
                                        "__libc_start_main", "PyEval_",
                                        "PyObject_",         "PyFunction_"};
    static const char *const files[] = {"core/boxing",
                                        "/Register",
                                        "/Redispatch",
                                        "pythonrun.c",
                                        "Modules/main.c",
                                        "Objects/call.c",
                                        "Objects/methodobject.c",
                                        "pycore_ceval.h",
                                        "ceval.c",
                                        "cpython/abstract.h"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (contains(name, name_length, names[i]))
            return false;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (contains(filename, filename_length, files[i]))
            return false;
    return true;
}

static struct piece basename_of(struct piece path)
{
    const char *slash = memrchr(path.bytes, '/', path.length);
    if (!slash)
        return path;
    size_t skip = (size_t)(slash + 1 - path.bytes);
    return (struct piece){slash + 1, path.length - skip};
}

static bool ends_with(struct piece text, const char *end)
{
    size_t length = strlen(end);
    return text.length >= length && memcmp(text.bytes + text.length - length, end, length) == 0;
}

bool frame_is_python(const struct snapshot *snapshot, const struct frame *frame)
{
    if (frame->flags & FRAME_PYTHON)
        return true;
    if (frame->flags & FRAME_NATIVE)
        return false;
    struct piece file;
    file.bytes = snapshot_object_text(snapshot, frame->filename, &file.length);
    return ends_with(file, ".py") || (file.length && file.bytes[0] == '<' && ends_with(file, ">"));
}

void frame_native_name(const struct snapshot *snapshot, const struct frame *frame, struct text *text)
{
    if (frame->module == NONE32) {
        text_printf(text, "0x%" PRIx64, frame->offset);
        return;
    }
    struct piece path;
    path.bytes = snapshot_content_text(snapshot, snapshot->modules[frame->module].path, &path.length);
    path = basename_of(path);
    text_append(text, path.bytes, path.length);
    text_printf(text, "+0x%" PRIx64, frame->offset);
}

/* The odd value of a frame's field, where it is not in the columns; a plain integer becomes its digits. */
static void add_odd_text(struct frame_texts *texts, uint32_t frame, enum field field)
{
    const struct snapshot *snapshot = texts->snapshot;
    uint16_t number = snapshot->frames[frame].shape;
    const struct shape *shape = &snapshot->shapes[number];
    value content;
    for (uint32_t slot = 0; slot < shape->count; slot++) {
        if (shape->keys[slot] != (uint32_t)field ||
            !snapshot_get_odd(snapshot, ROW_FRAME, frame, (uint16_t)slot, &content))
            continue;
        if (value_kind(content) == VALUE_NONE)
            text_add(&texts->scratch, "None");
        else if (value_kind(content) == VALUE_TRUE || value_kind(content) == VALUE_FALSE)
            text_add(&texts->scratch, value_kind(content) == VALUE_TRUE ? "True" : "False");
        else
            text_add(&texts->scratch, "?");
        return;
    }
    if (field == FIELD_LINE)
        text_printf(&texts->scratch, "%" PRId64, snapshot->frames[frame].line);
}

static void make_text(struct frame_texts *texts, uint32_t number, struct piece file, struct piece name)
{
    const struct frame *frame = &texts->snapshot->frames[number];
    file = basename_of(file);
    if (frame->filename == STRING_NONE)
        add_odd_text(texts, number, FIELD_FILENAME);
    text_append(&texts->scratch, file.bytes, file.length);
    text_char(&texts->scratch, ':');
    if (frame->shape != SHAPE_OURS && texts->snapshot->odd_count)
        add_odd_text(texts, number, FIELD_LINE);
    else
        text_printf(&texts->scratch, "%" PRId64, frame->line);
    text_char(&texts->scratch, ':');
    if (frame->name == STRING_NONE)
        add_odd_text(texts, number, FIELD_NAME);
    text_append(&texts->scratch, name.bytes, name.length);
}

uint32_t frame_label(struct frame_texts *texts, uint32_t number)
{
    uint32_t known = texts->by_frame[number];
    if (known)
        return known == 1 ? FRAME_LEFT_OUT : known - 2;
    const struct snapshot *snapshot = texts->snapshot;
    const struct frame *frame = &snapshot->frames[number];
    struct piece file, name;
    file.bytes = snapshot_object_text(snapshot, frame->filename, &file.length);
    name.bytes = snapshot_object_text(snapshot, frame->name, &name.length);
    text_clear(&texts->scratch);
    if ((frame->flags & FRAME_NATIVE) && !(frame->flags & FRAME_SYMBOLIZED)) {
        frame_native_name(snapshot, frame, &texts->scratch);
    } else if (!frame_is_shown(name.bytes, name.length, file.bytes, file.length)) {
        texts->by_frame[number] = 1;
        return FRAME_LEFT_OUT;
    } else {
        make_text(texts, number, file, name);
    }
    uint32_t label = frame_label_of_text(texts, text_string(&texts->scratch), texts->scratch.length);
    if (label != STRING_NONE && label < UINT32_MAX - 2)
        texts->by_frame[number] = label + 2;
    return label;
}

static struct piece string_of(const struct snapshot *snapshot, value dict, const char *key)
{
    value content;
    struct piece piece = {"?", 1};
    if (snapshot_dict_get(snapshot, dict, key, &content) && value_kind(content) == VALUE_STRING)
        piece.bytes = snapshot_object_text(snapshot, (uint32_t)value_payload(content), &piece.length);
    return piece;
}

uint32_t frame_label_of_value(struct frame_texts *texts, value frame)
{
    const struct snapshot *snapshot = texts->snapshot;
    if (value_kind(frame) == VALUE_ROW && value_row_kind(frame) == ROW_FRAME &&
        value_row_number(frame) < snapshot->frame_count)
        return frame_label(texts, (uint32_t)value_row_number(frame));
    if (value_kind(frame) != VALUE_DICT)
        return FRAME_LEFT_OUT;
    struct piece file = string_of(snapshot, frame, "filename"), name = string_of(snapshot, frame, "name");
    if (!frame_is_shown(name.bytes, name.length, file.bytes, file.length))
        return FRAME_LEFT_OUT;
    int64_t line = 0;
    value content;
    if (snapshot_dict_get(snapshot, frame, "line", &content))
        values_get_int(snapshot->values, content, &line);
    text_clear(&texts->scratch);
    file = basename_of(file);
    text_append(&texts->scratch, file.bytes, file.length);
    text_printf(&texts->scratch, ":%" PRId64 ":", line);
    text_append(&texts->scratch, name.bytes, name.length);
    return frame_label_of_text(texts, text_string(&texts->scratch), texts->scratch.length);
}

size_t stack_frames(const struct snapshot *snapshot, uint32_t stack, uint32_t **frames, size_t *capacity)
{
    size_t depth = snapshot->stacks[stack].depth;
    if (array_reserve(frames, capacity, depth + 1, sizeof(**frames)))
        return SIZE_MAX;
    for (size_t i = depth; i > 0; i--) {
        (*frames)[i - 1] = snapshot->stacks[stack].frame;
        stack = snapshot->stacks[stack].parent;
    }
    return depth;
}
