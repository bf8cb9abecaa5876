/*
 * Any bytes as a pickle: refused, or read as a snapshot that is valid, that can be written, and that then reads the same
 * way again.  The fast path and the general machine must agree.
 */
#include "base/input.h"
#include "base/output.h"
#include "format/torch_read.h"
#include "format/torch_write.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct snapshot *read_bytes(const void *bytes, size_t length, bool general, int *status)
{
    struct torch_read_options options = {.no_fast_path = general};
    struct snapshot *snapshot = NULL;
    struct input *input;
    struct error err = {0};
    *status = input_from_memory(bytes, length, UINT64_C(64) << 20, &input, &err);
    if (*status)
        return NULL;
    *status = torch_read(input, &options, &snapshot, &err);
    input_close(input);
    if ((*status != 0) != (snapshot == NULL) || (*status && !err.message[0]) ||
        (snapshot && !snapshot_is_valid(snapshot, &err)))
        abort();
    return snapshot;
}

static unsigned char *write_bytes(const struct snapshot *snapshot, size_t *length)
{
    struct output *output;
    struct error err = {0};
    unsigned char *bytes = NULL;
    if (output_to_memory(&bytes, length, &output, &err))
        return NULL;
    if (torch_write(snapshot, output, &err)) {
        output_abandon(output);
        free(bytes);
        return NULL;
    }
    return output_commit(output, &err) ? NULL : bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int status, general_status, again_status;
    struct snapshot *snapshot = read_bytes(data, size, false, &status);
    struct snapshot *general = read_bytes(data, size, true, &general_status);
    if (status != general_status)
        abort();
    if (snapshot) {
        size_t length = 0, general_length = 0, twice_length = 0;
        unsigned char *bytes = write_bytes(snapshot, &length), *general_bytes = write_bytes(general, &general_length);
        if (!bytes != !general_bytes || length != general_length || (bytes && memcmp(bytes, general_bytes, length) != 0))
            abort();
        /* The first writing may drop what nothing but the memo held; from then on nothing changes. */
        struct snapshot *again = bytes ? read_bytes(bytes, length, false, &again_status) : NULL;
        unsigned char *twice = again ? write_bytes(again, &twice_length) : NULL;
        struct snapshot *more = twice ? read_bytes(twice, twice_length, true, &again_status) : NULL;
        unsigned char *thrice = more ? write_bytes(more, &length) : NULL;
        if (bytes && (!thrice || twice_length != length || memcmp(twice, thrice, length) != 0))
            abort();
        snapshot_free(more);
        free(thrice);
        snapshot_free(again);
        free(bytes);
        free(general_bytes);
        free(twice);
    }
    snapshot_free(snapshot);
    snapshot_free(general);
    return 0;
}
