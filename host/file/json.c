/* SPDX-License-Identifier: Apache-2.0 */
#include "file/json.h"

#include <string.h>

#include "base/str.h"
#include "base/text.h"

static bool broken(struct json_reader *reader, const char *why)
{
    reader->why = why;
    return false;
}

static void skip_blanks(struct json_reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t' ||
                                        *reader->at == '\n' || *reader->at == '\r'))
        reader->at++;
}

bool json_take(struct json_reader *reader, char wanted)
{
    skip_blanks(reader);
    if (reader->at == reader->end || *reader->at != wanted)
        return false;
    reader->at++;
    return true;
}

bool json_open(struct json_reader *reader, char wanted, const char *what)
{
    return json_take(reader, wanted) || broken(reader, what);
}

enum json_next json_next(struct json_reader *reader, char close, bool *first)
{
    const bool was_first = *first;

    *first = false;
    if (json_take(reader, close))
        return JSON_END;
    if (was_first || json_take(reader, ','))
        return JSON_MEMBER;
    broken(reader, close == '}' ? "a comma or } is expected" : "a comma or ] is expected");
    return JSON_BROKEN;
}

/* ---- texts ---- */

static bool take_hex(struct json_reader *reader, uint32_t *out)
{
    *out = 0;
    if (reader->end - reader->at < 4)
        return broken(reader, "the escape ends early");
    for (int i = 0; i < 4; i++, reader->at++) {
        const char c = *reader->at;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;

        if (digit < 0)
            return broken(reader, "\\u needs four hexadecimal digits");
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* The UTF-8 of a code never has more bytes than its escape. */
static char *put_char(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *to++ = (char)(0xe0 | code >> 12);
        } else {
            *to++ = (char)(0xf0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

/* What follows \u: one unit, or two that are a surrogate pair. */
static char *take_unicode(struct json_reader *reader, char *to)
{
    uint32_t code, low;

    if (!take_hex(reader, &code))
        return NULL;
    if (code == 0) {
        broken(reader, "a text with a zero character");
        return NULL;
    }
    if (code < 0xd800 || code > 0xdfff)
        return put_char(to, code);
    if (code > 0xdbff || reader->end - reader->at < 2 || memcmp(reader->at, "\\u", 2) != 0) {
        broken(reader, "half of a surrogate pair");
        return NULL;
    }
    reader->at += 2;
    if (!take_hex(reader, &low))
        return NULL;
    if (low < 0xdc00 || low > 0xdfff) {
        broken(reader, "half of a surrogate pair");
        return NULL;
    }
    return put_char(to, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
}

static const char short_escapes[] = "\"\\/bfnrt";
static const char short_meanings[] = "\"\\/\b\f\n\r\t";

/* What follows a backslash. */
static char *take_escape(struct json_reader *reader, char *to)
{
    const char *found;

    if (reader->at == reader->end) {
        broken(reader, "the escape ends early");
        return NULL;
    }
    if (*reader->at == 'u') {
        reader->at++;
        return take_unicode(reader, to);
    }
    found = memchr(short_escapes, *reader->at, sizeof(short_escapes) - 1);
    if (!found) {
        broken(reader, "an unknown escape");
        return NULL;
    }
    reader->at++;
    *to++ = short_meanings[found - short_escapes];
    return to;
}

/* A character that stands for itself. */
static char *take_char(struct json_reader *reader, char *to)
{
    const size_t bytes = text_char_bytes(reader->at, (size_t)(reader->end - reader->at));

    if ((unsigned char)*reader->at < ' ' || !bytes) {
        broken(reader, bytes ? "a control character in a text" : "a text that is not UTF-8");
        return NULL;
    }
    memmove(to, reader->at, bytes);
    reader->at += bytes;
    return to + bytes;
}

char *json_text(struct json_reader *reader, const char *what)
{
    char *text, *to;

    if (!json_take(reader, '"')) {
        broken(reader, what);
        return NULL;
    }
    text = to = reader->at;
    while (reader->at < reader->end && *reader->at != '"') {
        const bool escaped = *reader->at == '\\';

        reader->at += escaped;
        to = escaped ? take_escape(reader, to) : take_char(reader, to);
        if (!to)
            return NULL;
    }
    if (reader->at == reader->end) {
        broken(reader, "a text without its end");
        return NULL;
    }
    reader->at++;
    *to = '\0';
    return text;
}

/* ---- numbers ---- */

bool json_whole(struct json_reader *reader, int64_t *out)
{
    static const char why[] = "a whole number from 0 to 9223372036854775807 is expected";
    const char *start;
    int64_t number = 0;

    skip_blanks(reader);
    start = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9') {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *reader->at - '0', &number))
            return broken(reader, why);
        reader->at++;
    }
    if (reader->at == start || (*start == '0' && reader->at - start > 1))
        return broken(reader, why);
    if (reader->at < reader->end &&
        (*reader->at == '.' || *reader->at == 'e' || *reader->at == 'E'))
        return broken(reader, why);
    *out = number;
    return true;
}

bool json_at_end(struct json_reader *reader)
{
    skip_blanks(reader);
    return reader->at == reader->end || broken(reader, "something follows the object");
}

/* ---- writing ---- */

void json_add_text(struct str *out, const char *text)
{
    str_add(out, "\"", 1);
    while (*text) {
        const size_t plain = strcspn(text, "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"
                                           "\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19"
                                           "\x1a\x1b\x1c\x1d\x1e\x1f");

        str_add(out, text, plain);
        text += plain;
        if (*text == '"' || *text == '\\')
            str_addf(out, "\\%c", *text++);
        else if (*text)
            str_addf(out, "\\u%04x", (unsigned)(unsigned char)*text++);
    }
    str_add(out, "\"", 1);
}
