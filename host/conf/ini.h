/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an INI text line by line and rejects everything ambiguous.  Thread-safe. */
#ifndef CONF_INI_H
#define CONF_INI_H

#include <stddef.h>

#include <frit/status.h>

enum {
    INI_LINE_BYTES = 198, /* at most, without the line's end */
    INI_SECTION_BYTES = 48,
    INI_KEY_BYTES = 49,
};

struct ini_text {
    const char *name; /* for messages */
    const char *bytes;
    size_t length;
};

struct ini_line {
    const char *section;
    const char *key; /* NULL: the beginning of the section */
    const char *value;
    unsigned number; /* from 1 */
};

/* Receives a line; a failure ends reading. */
typedef frit_status (*ini_sink)(void *ctx, const struct ini_line *line, frit_err *err);

/* Passes every section and every "key = value" to `sink`, up to the first invalid line, whose error
 * message begins with NAME:LINE. */
FRIT_NODISCARD frit_status ini_read(const struct ini_text *text, ini_sink sink, void *ctx,
                                    frit_err *err);

#endif
