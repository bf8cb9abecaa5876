/*
 * JSON as the writer of snapshots needs it: commas, keys, exact integers, and values of files (value.h).
 *
 * Lists, tuples and sets become arrays; dicts become objects, or {"pairs": [[key, value], ...]} if a key is no string;
 * bytes {"bytes": "hex"}; floats that JSON lacks strings; what points into the columns {"stack": number} or
 * {"row": kind, "number": n}.  Objects shared so often that the text would not end are an error.
 */
#ifndef FORMAT_JSON_VALUE_H
#define FORMAT_JSON_VALUE_H

#include "base/error.h"
#include "base/output.h"
#include "base/text.h"
#include "snapshot/snapshot.h"

struct json {
    struct output *output;
    const struct snapshot *snapshot;
    struct text text;
    bool comma;       /* something stands before what comes next */
    uint64_t budget;  /* values of files that may still be written */
    bool too_shared;
};

void json_open(struct json *json, char bracket);
void json_close(struct json *json, char bracket);
void json_key(struct json *json, const char *key);
void json_key_bytes(struct json *json, const char *key, size_t length);
void json_signed(struct json *json, int64_t number);
void json_unsigned(struct json *json, uint64_t number);
void json_bool(struct json *json, bool truth);
void json_null(struct json *json);
void json_bytes(struct json *json, const char *bytes, size_t length);
void json_content(struct json *json, uint32_t content); /* null for STRING_NONE */
void json_object(struct json *json, uint32_t object);
void json_value(struct json *json, value v);

#endif
