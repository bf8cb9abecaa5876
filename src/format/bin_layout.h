/*
 * snapshot.bin in numbers; man/cudamem-snapshot.5 says the same in words.  Everything is little-endian.
 *
 *   file     header, sections one after the other without gaps, the last of them the index
 *   section  a header of 32 bytes and its payload, packed by zlib if that is smaller; the payload is tables
 *   table    a count of rows, the columns, a 0
 *   column   number, encoding, count of values, count of bytes, the bytes; a reader skips those it does not know
 *
 * A new section, column or table is a new minor version; anything an old reader would misread is a new major one.
 * Numbers below never change their meaning.
 */
#ifndef FORMAT_BIN_LAYOUT_H
#define FORMAT_BIN_LAYOUT_H

#include <stdint.h>

#define BIN_MAGIC "\x89" "CUMEM\r\n"
#define BIN_MAGIC_LENGTH 8
#define BIN_MAJOR 1
#define BIN_MINOR 0

/* The header: magic 8, major u16, minor u16, bytes of the header u32, bytes of the file u64, offset of the index u64,
 * entries u64, unpacked bytes of all sections u64, sections u32, flags u32, 0 u32, checksum u32 of all before it. */
#define BIN_HEADER_LENGTH 64
#define BIN_HEADER_MAX 4096
#define BIN_SECTION_LENGTH 32 /* type u32, flags u32, raw u64, packed u64, payload's checksum u32, header's checksum u32 */

#define BIN_ROWS 65536u /* rows of a table at most, entries of a chunk */
#define BIN_TRACES 65536u    /* lists of `device_traces`: device numbers have 16 bits */
#define BIN_OTHER_KEYS 4096u /* keys of shapes: from here on, contents */
#define BIN_WIDE_ROWS 256u /* rows of a table whose rows are wide: statistics */
#define BIN_RATIO 1040u /* deflate cannot expand more */

enum bin_section_flag {
    BIN_REQUIRED = 1, /* a reader that does not know the type must not go on */
    BIN_ZLIB = 2,     /* packed; else stored as it is */
};

enum bin_section {
    BIN_INFO = 1,
    BIN_STRINGS,
    BIN_STRING_OBJECTS,
    BIN_MODULES,
    BIN_FRAMES,
    BIN_STACKS,
    BIN_CONTEXTS,
    BIN_STREAMS,
    BIN_POOLS,
    BIN_CALLS,
    BIN_SHAPES,
    BIN_PROCESSES,
    BIN_DEVICES,
    BIN_STATISTICS,
    BIN_VALUES,      /* the extras: containers and long things by number ... */
    BIN_VALUE_ITEMS, /* ... what stands in the containers ... */
    BIN_ODDS,        /* ... and where in the columns' rows they belong */
    BIN_SETTINGS,
    BIN_ANNOTATIONS,
    BIN_ENTRIES,     /* one chunk */
    BIN_SEGMENTS,    /* of the state at the end */
    BIN_BLOCKS,
    BIN_CHECKPOINT,  /* a whole state of the past */
    BIN_INDEX,
    BIN_SECTION_COUNT
};

enum bin_encoding {
    BIN_CONSTANT, /* one varint for all */
    BIN_PLANES,   /* width u8, then the lowest byte of every value, the next byte of every value, ... */
    BIN_VARINT,   /* 7 bits a byte, lowest first, top bit set on all but the last */
    BIN_DICTIONARY, /* varint count, that many varints; then their indices as planes, one plane up to 256, else two */
    BIN_RUNS,     /* varint count; that many values as varints, that many lengths less one as varints */
    BIN_BYTES,    /* as many bytes as values */
    BIN_ENCODING_COUNT,
    BIN_DELTA = 16 /* added: each value is the zigzag of its difference to the one before (the first to 0) */
};

/* Columns of a chunk of entries.  The live lists and predictions are described in bin_live.h. */
enum bin_entry_column {
    BIN_ENTRY_FIRST = 1,    /* one value: number of the first entry */
    BIN_ENTRY_CONTEXT_NEXT, /* one value: the context that counts as new at the start */
    BIN_ENTRY_ACTION,
    BIN_ENTRY_TIME,        /* zigzag of the difference to the entry before */
    BIN_ENTRY_CONTEXT,     /* enum bin_context_code */
    BIN_ENTRY_CONTEXT_VALUE,
    BIN_ENTRY_FLAGS,       /* these four: zigzag of the difference to the last entry of the same action */
    BIN_ENTRY_SHAPE,
    BIN_ENTRY_CALL,
    BIN_ENTRY_THREAD,
    BIN_ENTRY_COMPILE_CONTEXT, /* 0 none; 1 + zigzag of the difference to the line through the last two */
    BIN_ENTRY_USER_METADATA,
    BIN_ENTRY_RANK = 24,   /* + number of enum bin_list, of its releases: 0, or 1 + how many in it are younger than what
                              is released */
    BIN_ENTRY_MINE = 32,   /* + number of enum bin_pair_field: entries that stand for themselves: the value */
    BIN_ENTRY_PAIRED = 48, /* + the same: entries with a rank: zigzag of the difference to what they release */
};

/* Lists of what is live within a chunk, in the order of their entries. */
enum bin_list {
    BIN_LIST_ALLOCATIONS, /* made by alloc, released by free_requested */
    BIN_LIST_PENDING,     /* made by free_requested, released by free_completed */
    BIN_LIST_SEGMENTS,    /* made by segment_alloc and segment_map, released by segment_free and segment_unmap */
    BIN_LIST_COUNT
};

enum bin_pair_field {
    BIN_PAIR_ADDRESS,
    BIN_PAIR_SIZE,
    BIN_PAIR_STREAM,
    BIN_PAIR_DEVICE,
    BIN_PAIR_PROCESS,
    BIN_PAIR_POOL, /* + 1, 0 for unknown */
    BIN_PAIR_KIND,
    BIN_PAIR_COUNT
};

enum bin_context_code {
    BIN_CONTEXT_SAME,     /* as the entry before */
    BIN_CONTEXT_NEW,      /* one more than the highest so far */
    BIN_CONTEXT_ABSENT,   /* no stack was taken */
    BIN_CONTEXT_PAIRED,   /* as what it releases */
    BIN_CONTEXT_EXPLICIT, /* next of BIN_ENTRY_CONTEXT_VALUE */
    BIN_CONTEXT_CODES
};

/* Optional columns of the entries: bits in BIN_INFO. */
enum bin_optional {
    BIN_HAS_COMPILE_CONTEXT = 1,
    BIN_HAS_USER_METADATA = 2,
    BIN_HAS_PROCESS = 4,
    BIN_HAS_POOL = 8,
    BIN_HAS_THREAD = 16,
    BIN_HAS_CALL = 32,
    BIN_HAS_KIND = 64,
};

static inline uint64_t bin_zigzag(uint64_t difference)
{
    return (difference << 1) ^ (0 - (difference >> 63));
}

static inline uint64_t bin_unzigzag(uint64_t z)
{
    return (z >> 1) ^ (0 - (z & 1));
}

#endif
