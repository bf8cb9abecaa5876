/*
 * An unpickling machine for plain data, protocols 0 to 5.
 *
 * It runs a pickle's opcodes over a stream and gives the value that the pickle describes: None, bools, integers, floats,
 * strings, bytes, lists, tuples, dicts, sets, with the identity of objects.  Nothing is imported or called: opcodes that
 * name code are refused by name.  A few harmless classes are read as the plain data that they stand for: OrderedDict and
 * defaultdict as dicts, torch.Size as a tuple, and what protocols 0 to 3 spell as calls (set, frozenset, bytes,
 * bytearray).
 *
 * Hooks let the caller take objects out of the machine while it runs, so that a file of gigabytes need not stand in
 * memory as objects; see pickle_machine.h for what hooks may look at.
 *
 * Lengths, depth and memo numbers are checked before memory is taken; memory stays under twice the bytes read plus
 * 64 MiB, or the file is refused (what hooks leave out of held() is theirs to limit).  Errors carry the offset of the
 * opcode.  Strings become string objects of the snapshot, containers live in its values.  Not thread safe.
 */
#ifndef FORMAT_PICKLE_READ_H
#define FORMAT_PICKLE_READ_H

#include "base/error.h"
#include "base/input.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pickle;

struct pickle_hooks {
    /* Pairs are about to be stored in dict; the hook may replace their words. */
    int (*set_items)(void *context, struct pickle *pickle, value dict, value *pairs, size_t words, struct error *err);

    /* Items, the first of them a dict (maybe one that is a row by now), are about to be appended to the list at this place of the machine's stack.  With
     * *taken set the machine drops them. */
    int (*append)(void *context, struct pickle *pickle, size_t position, value *items, size_t count, bool *taken,
                  struct error *err);

    /* An empty dict is about to be made, directly in an open batch of the list at this place of the stack.  The hook may
     * consume input (pickle->at) and memo numbers itself, as long as the machine can go on after it. */
    int (*dict_starts)(void *context, struct pickle *pickle, size_t position, struct error *err);

    /* The pickle ended well; the machine's memo and notes are still there. */
    int (*finish)(void *context, struct pickle *pickle, value top, struct error *err);

    /* Bytes held by the caller's own tables, for the memory check. */
    uint64_t (*held)(void *context);
};

/* Reads one pickle from where the input stands; hooks may be NULL.  What follows its end is left alone (but gzip's
 * checksum is compared).  0, STATUS_INPUT, STATUS_UNSUPPORTED, STATUS_NO_MEMORY. */
int pickle_read(struct input *input, struct snapshot *snapshot, const struct pickle_hooks *hooks, void *context,
                value *result, struct error *err);

/* Could a file that starts like this be a pickle?  Protocols 0 and 1 have no magic: this looks at the first opcodes. */
bool pickle_is_pickle(const unsigned char *start, size_t length);

#endif
