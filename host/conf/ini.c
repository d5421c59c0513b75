/* SPDX-License-Identifier: Apache-2.0 */
/* A strict wrapper of libinih, which only splits and trims lines here.  libinih itself truncates
 * long lines, sections and keys, ends a value at NUL or " ;", appends indented lines to the
 * previous value, and continues after errors.  Lines are therefore read by next_line, which rejects
 * all of these and counts lines. */
#include "conf/ini.h"

#include <stdbool.h>
#include <string.h>

#include <ini.h>

#include "base/fail.h"

struct ini_reader {
    const struct ini_text *text;
    size_t at;
    unsigned number; /* number of the last line */
    char section[INI_SECTION_BYTES + 1];
    ini_sink sink;
    void *ctx;
    frit_status status; /* of the first failure */
    frit_err *err;
};

static const char blanks[] = " \t";

static frit_status reject(const struct ini_reader *reader, const char *why)
{
    return fail(reader->err, FRIT_INVALID, "%s:%u: %s", reader->text->name, reader->number, why);
}

static frit_status check_bytes(const struct ini_reader *reader, const char *line, size_t length,
                               size_t most)
{
    if (most > INI_LINE_BYTES)
        most = INI_LINE_BYTES;
    if (length > most)
        return fail(reader->err, FRIT_INVALID,
                    "%s:%u: the line has %zu bytes; at most %zu are allowed", reader->text->name,
                    reader->number, length, most);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];

        if ((byte < ' ' && byte != '\t') || byte == 0x7f)
            return fail(reader->err, FRIT_INVALID,
                        "%s:%u: byte %zu is 0x%02x, which is not text; remove it",
                        reader->text->name, reader->number, i + 1, byte);
    }
    return FRIT_OK;
}

static bool has_inline_comment(const char *line)
{
    for (const char *c = line + 1; *c; c++) {
        if ((*c == ';' || *c == '#') && strchr(blanks, c[-1]))
            return true;
    }
    return false;
}

/* Checks a line that begins with '['. */
static frit_status check_section(struct ini_reader *reader, const char *line)
{
    const char *end = strchr(line, ']');
    size_t length = end ? (size_t)(end - line) - 1 : 0;
    struct ini_line begin = {.section = reader->section, .number = reader->number};

    if (!end)
        return reject(reader, "the section's ']' is missing");
    if (end[1 + strspn(end + 1, blanks)])
        return reject(reader, "there is text after the section's ']'; put it on a line of its own");
    if (length == 0)
        return reject(reader, "the section has no name");
    if (length > INI_SECTION_BYTES)
        return fail(reader->err, FRIT_INVALID,
                    "%s:%u: the section's name has %zu bytes; at most %d are allowed",
                    reader->text->name, reader->number, length, INI_SECTION_BYTES);
    memcpy(reader->section, line + 1, length);
    reader->section[length] = '\0';
    return reader->sink(reader->ctx, &begin, reader->err);
}

static frit_status check_key(const struct ini_reader *reader, const char *line)
{
    const char *sign = line + strcspn(line, "=:");
    size_t length = (size_t)(sign - line);

    if (*sign != '=')
        return reject(reader, "neither [section] nor key = value");
    while (length > 0 && strchr(blanks, line[length - 1]))
        length--;
    if (length == 0)
        return reject(reader, "the key before '=' is missing");
    if (length > INI_KEY_BYTES)
        return fail(reader->err, FRIT_INVALID,
                    "%s:%u: the key has %zu bytes; at most %d are allowed", reader->text->name,
                    reader->number, length, INI_KEY_BYTES);
    if (!reader->section[0])
        return reject(reader, "a key stands before the first [section]");
    return FRIT_OK;
}

static frit_status check_line(struct ini_reader *reader, const char *line)
{
    const char *start = line + strspn(line, blanks);

    if (strchr(";#", *start)) /* a comment, or empty */
        return FRIT_OK;
    if (start > line)
        return reject(
            reader,
            "the line begins with a blank; values cannot span lines, and keys are not indented");
    if (has_inline_comment(line))
        return reject(
            reader,
            "';' or '#' after a blank looks like a comment; put comments on lines of their own");
    return *line == '[' ? check_section(reader, line) : check_key(reader, line);
}

/* Copies the next line, without its end, to `line` of `capacity` bytes; false at the end and for an
 * invalid line. */
static bool next_line(struct ini_reader *reader, char *line, size_t capacity)
{
    const char *start = reader->text->bytes + reader->at;
    size_t left = reader->text->length - reader->at;
    const char *end;
    size_t length;

    if (left == 0)
        return false;
    end = memchr(start, '\n', left);
    length = end ? (size_t)(end - start) : left;
    reader->at += length + (end != NULL);
    reader->number++;
    if (length > 0 && start[length - 1] == '\r')
        length--;
    reader->status = check_bytes(reader, start, length, capacity - 1);
    if (reader->status)
        return false;
    memcpy(line, start, length);
    line[length] = '\0';
    reader->status = check_line(reader, line);
    return !reader->status;
}

static char *read_line(char *line, int capacity, void *stream)
{
    struct ini_reader *reader = stream;

    return !reader->status && next_line(reader, line, (size_t)capacity) ? line : NULL;
}

static int take_value(void *user, const char *section, const char *key, const char *value)
{
    struct ini_reader *reader = user;
    struct ini_line line = {section, key, value, reader->number};

    if (!reader->status)
        reader->status = reader->sink(reader->ctx, &line, reader->err);
    return !reader->status;
}

frit_status ini_read(const struct ini_text *text, ini_sink sink, void *ctx, frit_err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark that some editors write */
    struct ini_reader reader = {.text = text, .sink = sink, .ctx = ctx, .err = err};
    int wrong;

    if (text->length >= 3 && memcmp(text->bytes, mark, 3) == 0)
        reader.at = 3;
    wrong = ini_parse_stream(read_line, &reader, take_value, &reader);
    if (!reader.status && wrong)
        return reject(&reader, "the line is not understood");
    return reader.status;
}
