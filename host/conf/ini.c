/* SPDX-License-Identifier: Apache-2.0 */
/* Around libinih, which splits and trims but is lenient: it cuts long lines, sections and keys,
 * ends a value at NUL or " ;", appends indented lines to the value before, and goes on after an
 * error.  So its lines come from read_line, which lets nothing of that through and counts. */
#include "conf/ini.h"

#include <stdbool.h>
#include <string.h>

#include <ini.h>

#include "base/fail.h"

struct ini_reader {
    const struct ini_text *text;
    size_t at;
    unsigned number; /* of the line handed out last */
    char section[INI_SECTION_BYTES + 1];
    ini_sink sink;
    void *ctx;
    frit_status status; /* of the first failure */
    frit_err *err;
};

static const char blanks[] = " \t";

static frit_status refuse(const struct ini_reader *reader, const char *why)
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
                        "%s:%u: byte %zu is 0x%02x, which is no text; remove it",
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

/* Of a line that begins with a bracket. */
static frit_status check_section(struct ini_reader *reader, const char *line)
{
    const char *end = strchr(line, ']');
    size_t length = end ? (size_t)(end - line) - 1 : 0;
    struct ini_line begin = {.section = reader->section, .number = reader->number};

    if (!end)
        return refuse(reader, "the section's ']' is missing");
    if (end[1 + strspn(end + 1, blanks)])
        return refuse(reader, "there is text after the section's ']'; put it on a line of its own");
    if (length == 0)
        return refuse(reader, "the section has no name");
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
        return refuse(reader, "is neither [section] nor key = value");
    while (length > 0 && strchr(blanks, line[length - 1]))
        length--;
    if (length == 0)
        return refuse(reader, "the key before '=' is missing");
    if (length > INI_KEY_BYTES)
        return fail(reader->err, FRIT_INVALID,
                    "%s:%u: the key has %zu bytes; at most %d are allowed", reader->text->name,
                    reader->number, length, INI_KEY_BYTES);
    if (!reader->section[0])
        return refuse(reader, "a key stands before the first [section]");
    return FRIT_OK;
}

static frit_status check_line(struct ini_reader *reader, const char *line)
{
    const char *start = line + strspn(line, blanks);

    if (strchr(";#", *start)) /* a comment, or empty */
        return FRIT_OK;
    if (start > line)
        return refuse(
            reader, "the line begins with a blank; values have one line, and keys start in front");
    if (has_inline_comment(line))
        return refuse(
            reader,
            "a blank before ';' or '#' would begin a comment; comments have lines of their own");
    return *line == '[' ? check_section(reader, line) : check_key(reader, line);
}

/* The next line into `line` of `room` bytes, without its end; false after the last or a wrong one.
 */
static bool next_line(struct ini_reader *reader, char *line, size_t room)
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
    reader->status = check_bytes(reader, start, length, room - 1);
    if (reader->status)
        return false;
    memcpy(line, start, length);
    line[length] = '\0';
    reader->status = check_line(reader, line);
    return !reader->status;
}

static char *read_line(char *line, int room, void *stream)
{
    struct ini_reader *reader = stream;

    return !reader->status && next_line(reader, line, (size_t)room) ? line : NULL;
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
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 files of some editors begin with it */
    struct ini_reader reader = {.text = text, .sink = sink, .ctx = ctx, .err = err};
    int wrong;

    if (text->length >= 3 && memcmp(text->bytes, mark, 3) == 0)
        reader.at = 3;
    wrong = ini_parse_stream(read_line, &reader, take_value, &reader);
    if (!reader.status && wrong)
        return refuse(&reader, "the line is not understood");
    return reader.status;
}
