/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to a script, a statement a line. */
#ifndef TEXT_TEXT_PARSE_H
#define TEXT_TEXT_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>
#include <frit/types.h>

#include "graph/text/text_script.h"

struct parser;
struct script;
struct token;

/* FRIT_INVALID with "name:line:column: text". */
frit_status script_fail(const struct script *script, uint32_t line, uint32_t column, frit_err *err,
                        const char *format, ...) FRIT_PRINTF(5, 6);
/* Takes the token. */
frit_status parse_advance(struct parser *p);
bool parse_at_sign(const struct parser *p, char sign);
bool parse_at_word(const struct parser *p, const char *word);
bool parse_at_line_end(const struct parser *p);
/* Takes this sign, or reports what is there instead. */
frit_status parse_sign(struct parser *p, char sign, const char *where);
/* FRIT_INVALID at the token. */
frit_status parse_fail(const struct parser *p, const struct token *at, const char *format, ...)
    FRIT_PRINTF(3, 4);
/* A word as a terminated text, cut to TEXT_MAX_NAME; returns text. */
const char *parse_word(frit_str word, char text[TEXT_MAX_NAME + 1]);
/* Room for one more item in an array of the script, as array_grow. */
frit_status parse_reserve(struct parser *p, void *array, uint32_t *capacity, uint32_t count,
                          size_t item);

#endif
