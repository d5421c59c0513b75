/* SPDX-License-Identifier: Apache-2.0 */
/* One INI text, line by line, refusing whatever could be read in two ways.  Threads: any. */
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
    const char *key; /* NULL: the section begins here */
    const char *value;
    unsigned number; /* from 1 */
};

/* Stops the reading by a failure. */
typedef frit_status (*ini_sink)(void *ctx, const struct ini_line *line, frit_err *err);

/* Hands every section and every "key = value" to `sink`, until the first that is wrong; its text
 * begins with NAME:LINE.  The sink has then seen the lines before. */
FRIT_NODISCARD frit_status ini_read(const struct ini_text *text, ini_sink sink, void *ctx,
                                    frit_err *err);

#endif
