/* SPDX-License-Identifier: Apache-2.0 */
/* The part of JSON (RFC 8259) that headers of files consist of: objects, lists, texts and whole
 * numbers.  The caller says what it expects next, so nothing nests deeper than the caller does, and
 * nothing is allocated.  Pure. */
#ifndef FILE_JSON_H
#define FILE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str;

/* Reads bytes that it may change: texts are unescaped and terminated where they stand. */
struct json_reader {
    char *start, *at, *end;
    const char *why; /* what is wrong at `at`, once something is */
};

/* Takes this character after blanks; false, without a reason, if another one follows. */
bool json_take(struct json_reader *reader, char wanted);
/* Takes what begins an object or a list; on failure `why` names `what` was expected. */
bool json_open(struct json_reader *reader, char wanted, const char *what);
/* Whether another member follows in an object or list that ends with `close`; takes the comma
 * before it, or the end.  `first` is true at first and becomes false.  After JSON_BROKEN `why` is
 * set. */
enum json_next { JSON_BROKEN, JSON_MEMBER, JSON_END };
enum json_next json_next(struct json_reader *reader, char close, bool *first);
/* A text, valid UTF-8 without a zero character; NULL: it is none. */
char *json_text(struct json_reader *reader, const char *what);
/* A number from 0 to INT64_MAX without fraction and exponent. */
bool json_whole(struct json_reader *reader, int64_t *out);
/* Only blanks follow. */
bool json_at_end(struct json_reader *reader);

/* Appends a text in quotes with what needs it escaped; `text` is valid UTF-8. */
void json_add_text(struct str *out, const char *text);

#endif
