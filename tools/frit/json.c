/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Bytes of the well-formed UTF-8 character at `text`, 0 if there is none (Unicode 15, table 3-7).
 */
static size_t utf8_length(const unsigned char *text)
{
    unsigned char low = 0x80, high = 0xbf;
    size_t more;

    if (*text < 0x80)
        return 1;
    if (*text < 0xc2 || *text > 0xf4)
        return 0;
    more = *text < 0xe0 ? 1 : *text < 0xf0 ? 2 : 3;
    if (*text == 0xe0)
        low = 0xa0;
    else if (*text == 0xed)
        high = 0x9f;
    else if (*text == 0xf0)
        low = 0x90;
    else if (*text == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i <= more; i++) {
        if (text[i] < low || text[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return more + 1;
}

static void put_text(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    fputc('"', out);
    while (*at) {
        size_t length = utf8_length(at);

        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(out, "\\u%04x", *at);
        else if (length)
            fwrite(at, 1, length, out);
        else
            fputs(replacement, out);
        at += length ? length : 1;
    }
    fputc('"', out);
}

/* Starts a value: unnamed numbers and texts of a list stay on the line, everything else begins a
 * new line. */
static void put_key(struct json *json, const char *key, bool single)
{
    bool line = key || !single;

    if (json->filled[json->depth])
        fputs(line ? "," : ", ", json->out);
    if (line)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    json->filled[json->depth] = true;
    json->lines[json->depth] = line;
    if (key) {
        put_text(json->out, key);
        fputs(": ", json->out);
    }
}

static void open_level(struct json *json, char open, char close)
{
    assert(json->depth + 1 < JSON_DEPTH);
    fputc(open, json->out);
    json->depth++;
    json->filled[json->depth] = false;
    json->lines[json->depth] = false;
    json->close[json->depth] = close;
}

void json_begin(struct json *json, FILE *out)
{
    *json = (struct json){.out = out};
    open_level(json, '{', '}');
}

void json_end(struct json *json)
{
    json_close(json);
    assert(json->depth == 0);
    fputc('\n', json->out);
}

void json_object(struct json *json, const char *key)
{
    put_key(json, key, false);
    open_level(json, '{', '}');
}

void json_list(struct json *json, const char *key)
{
    put_key(json, key, false);
    open_level(json, '[', ']');
}

void json_close(struct json *json)
{
    bool lines = json->lines[json->depth];
    char close = json->close[json->depth--];

    if (lines)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(close, json->out);
}

void json_text(struct json *json, const char *key, const char *text)
{
    put_key(json, key, true);
    if (text)
        put_text(json->out, text);
    else
        fputs("null", json->out);
}

void json_int(struct json *json, const char *key, int64_t value)
{
    put_key(json, key, true);
    fprintf(json->out, "%" PRId64, value);
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
    put_key(json, key, true);
    fprintf(json->out, "%" PRIu64, value);
}

void json_real(struct json *json, const char *key, double value)
{
    put_key(json, key, true);
    if (isfinite(value))
        fprintf(json->out, "%.17g", value);
    else
        fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_key(json, key, true);
    fputs(value ? "true" : "false", json->out);
}
