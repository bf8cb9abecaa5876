/*
 * Frames as the text views show them: `basename:line:name`, as PyTorch's memory_viz writes it, or nothing for the
 * plumbing that it leaves out (interpreter, dispatcher, unwinder).  A native frame without a symbol is
 * `library.so+0x1234`.  Each frame's text is made once and interned, so that frames with equal text have equal labels.
 *
 * Holds a pointer to the snapshot, which must outlive it.  Not thread safe.  Cost: one text a distinct frame.
 */
#ifndef ANALYZE_FRAME_TEXT_H
#define ANALYZE_FRAME_TEXT_H

#include "base/strings.h"
#include "base/text.h"
#include "snapshot/snapshot.h"

#define FRAME_LEFT_OUT NONE32

struct frame_texts;

struct frame_texts *frame_texts_new(const struct snapshot *snapshot); /* NULL: no memory */
void frame_texts_free(struct frame_texts *texts);

/* The label of a frame, or FRAME_LEFT_OUT.  frame_texts_failed() tells whether memory ran out meanwhile. */
uint32_t frame_label(struct frame_texts *texts, uint32_t frame);

/* Likewise for a frame that stands in the file as plain data (old `history` blocks): a row or a dict. */
uint32_t frame_label_of_value(struct frame_texts *texts, value frame);

/* Any other text as a label of the same numbering. */
uint32_t frame_label_of_text(struct frame_texts *texts, const char *bytes, size_t length);

const struct snapshot *frame_texts_snapshot(const struct frame_texts *texts);
bool frame_texts_failed(const struct frame_texts *texts);
const char *frame_label_text(const struct frame_texts *texts, uint32_t label, size_t *length); /* length may be NULL */
uint32_t frame_label_count(const struct frame_texts *texts);

/* True if the frame's file is Python source (or one of Python's own pseudo files, "<string>"). */
bool frame_is_python(const struct snapshot *snapshot, const struct frame *frame);

/* PyTorch's filter, by substrings of name and file name. */
bool frame_is_shown(const char *name, size_t name_length, const char *filename, size_t filename_length);

/* The numbers of a stack's frames, outermost first; returns how many, or SIZE_MAX without memory.  The buffer is grown
 * (array_reserve) and the caller frees it. */
size_t stack_frames(const struct snapshot *snapshot, uint32_t stack, uint32_t **frames, size_t *capacity);

/* "libfoo.so+0x1234", or the address alone where no module is known. */
void frame_native_name(const struct snapshot *snapshot, const struct frame *frame, struct text *text);

#endif
