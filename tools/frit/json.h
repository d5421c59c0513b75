/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming JSON writer: each call writes a key (NULL inside lists) and a value; commas,
 * indentation and escapes are handled here.  One thread per writer. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 8 };

struct json {
    FILE *out;
    int depth;
    bool filled[JSON_DEPTH]; /* a value was written at this depth */
    bool lines[JSON_DEPTH];  /* values are on lines of their own */
    char close[JSON_DEPTH];
};

/* The outermost value is an object; json_end closes it and ends the line. */
void json_begin(struct json *json, FILE *out);
void json_end(struct json *json);

void json_object(struct json *json, const char *key);
void json_list(struct json *json, const char *key);
/* Closes the innermost object or list. */
void json_close(struct json *json);

/* Bytes that are not UTF-8 become U+FFFD; NULL becomes null. */
void json_text(struct json *json, const char *key, const char *text);
void json_int(struct json *json, const char *key, int64_t value);
void json_uint(struct json *json, const char *key, uint64_t value);
/* Writes enough digits to read the same double back; null for NaN and infinities. */
void json_real(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);

#endif
