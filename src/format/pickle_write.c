/* Pickle opcodes into frames.  Uses base. */
#include "format/pickle_write.h"

#include <string.h>

enum { FRAME_FULL = 64 * 1024, FRAME_SMALLEST = 4 };

static void put_little(unsigned char *to, uint64_t number, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        to[i] = (unsigned char)(number >> (8 * i));
}

/* A frame is what stands in the buffer; tiny ones go out bare, as from Python. */
static void pickle_flush(struct pickle_writer *writer)
{
    unsigned char header[9] = {0x95};
    if (!writer->used)
        return;
    put_little(header + 1, writer->used, 8);
    if (writer->used >= FRAME_SMALLEST)
        output_write(writer->output, header, sizeof(header));
    output_write(writer->output, writer->frame, writer->used);
    writer->used = 0;
}

/* Frames end between opcodes only. */
static unsigned char *pickle_room(struct pickle_writer *writer, size_t count)
{
    if (writer->used + count > FRAME_FULL)
        pickle_flush(writer);
    unsigned char *room = writer->frame + writer->used;
    writer->used += count;
    return room;
}

void pickle_begin(struct pickle_writer *writer, struct output *output)
{
    static const unsigned char header[2] = {0x80, 4};
    writer->output = output;
    writer->memo = 0;
    writer->used = 0;
    output_write(output, header, sizeof(header));
}

void pickle_end(struct pickle_writer *writer)
{
    pickle_op(writer, '.');
    pickle_flush(writer);
}

void pickle_op(struct pickle_writer *writer, unsigned char opcode)
{
    *pickle_room(writer, 1) = opcode;
}

/* An opcode with a number after it. */
static void pickle_op_number(struct pickle_writer *writer, unsigned char opcode, uint64_t number, unsigned count)
{
    unsigned char *room = pickle_room(writer, 1 + count);
    room[0] = opcode;
    put_little(room + 1, number, count);
}

/* An opcode with a length and that many bytes.  Long ones stand outside frames. */
static void pickle_op_bytes(struct pickle_writer *writer, unsigned char opcode, unsigned count, const void *bytes,
                            size_t length)
{
    if (length >= FRAME_FULL / 2) {
        unsigned char header[9] = {opcode};
        pickle_flush(writer);
        put_little(header + 1, length, count);
        output_write(writer->output, header, 1 + count);
        output_write(writer->output, bytes, length);
        return;
    }
    unsigned char *room = pickle_room(writer, 1 + count + length);
    room[0] = opcode;
    put_little(room + 1, length, count);
    if (length)
        memcpy(room + 1 + count, bytes, length);
}

void pickle_write_long(struct pickle_writer *writer, const unsigned char *little_endian, size_t length)
{
    pickle_op_bytes(writer, length < 256 ? 0x8a : 0x8b, length < 256 ? 1 : 4, little_endian, length);
}

void pickle_write_int(struct pickle_writer *writer, int64_t number)
{
    if (number >= 0 && number <= UINT8_MAX) {
        pickle_op_number(writer, 'K', (uint64_t)number, 1);
    } else if (number >= 0 && number <= UINT16_MAX) {
        pickle_op_number(writer, 'M', (uint64_t)number, 2);
    } else if (number >= INT32_MIN && number <= INT32_MAX) {
        pickle_op_number(writer, 'J', (uint64_t)number, 4);
    } else {
        unsigned char bytes[8];
        size_t length = 8;
        put_little(bytes, (uint64_t)number, 8);
        while (length > 1 && bytes[length - 1] == (bytes[length - 2] >= 0x80 ? 0xff : 0))
            length--;
        pickle_write_long(writer, bytes, length);
    }
}

void pickle_write_unsigned(struct pickle_writer *writer, uint64_t number)
{
    if (number <= INT64_MAX) {
        pickle_write_int(writer, (int64_t)number);
        return;
    }
    unsigned char bytes[9] = {0};
    put_little(bytes, number, 8);
    pickle_write_long(writer, bytes, 9);
}

void pickle_write_float(struct pickle_writer *writer, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    pickle_op_number(writer, 'G', __builtin_bswap64(bits), 8);
}

void pickle_write_bool(struct pickle_writer *writer, bool truth)
{
    pickle_op(writer, truth ? 0x88 : 0x89);
}

void pickle_write_string(struct pickle_writer *writer, const char *bytes, size_t length)
{
    if (length < 256)
        pickle_op_bytes(writer, 0x8c, 1, bytes, length);
    else if (length <= UINT32_MAX)
        pickle_op_bytes(writer, 'X', 4, bytes, length);
    else
        pickle_op_bytes(writer, 0x8d, 8, bytes, length);
}

void pickle_write_bytes(struct pickle_writer *writer, const unsigned char *bytes, size_t length)
{
    if (length < 256)
        pickle_op_bytes(writer, 'C', 1, bytes, length);
    else if (length <= UINT32_MAX)
        pickle_op_bytes(writer, 'B', 4, bytes, length);
    else
        pickle_op_bytes(writer, 0x8e, 8, bytes, length);
}

void pickle_write_get(struct pickle_writer *writer, uint32_t number)
{
    if (number < 256)
        pickle_op_number(writer, 'h', number, 1);
    else
        pickle_op_number(writer, 'j', number, 4);
}

uint32_t pickle_memoize(struct pickle_writer *writer)
{
    pickle_op(writer, 0x94);
    return writer->memo++;
}

/* Protocol 5's opcode: protocol 4 has only a call for it, which we do not write. */
void pickle_write_bytearray(struct pickle_writer *writer, const unsigned char *bytes, size_t length)
{
    pickle_op_bytes(writer, 0x96, 8, bytes, length);
}

/* A lone item, or one left over after full batches, needs no mark. */
static bool pickle_is_lone(uint64_t position, uint64_t count)
{
    return position % PICKLE_BATCH == 0 && position + 1 == count;
}

void pickle_item(struct pickle_writer *writer, uint64_t position, uint64_t count, unsigned char batch_opcode)
{
    if (position % PICKLE_BATCH)
        return;
    if (position)
        pickle_op(writer, batch_opcode);
    if (!pickle_is_lone(position, count) || batch_opcode == PICKLE_ADDITEMS)
        pickle_op(writer, '(');
}

void pickle_items_end(struct pickle_writer *writer, uint64_t count, unsigned char batch_opcode)
{
    if (!count)
        return;
    if (pickle_is_lone(count - 1, count) && batch_opcode != PICKLE_ADDITEMS)
        pickle_op(writer, batch_opcode == 'e' ? 'a' : 's');
    else
        pickle_op(writer, batch_opcode);
}
