/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values, and the statements `input` and `const`. */
#ifndef TEXT_TEXT_INPUT_H
#define TEXT_TEXT_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>
#include <frit/types.h>

struct parser;
struct token;

/* Index of a defined value, GRAPH_NO_VALUE if there is none. */
uint32_t parse_find_value(const struct parser *p, frit_str name);
/* FRIT_INVALID: no such value, with the nearest. */
frit_status parse_fail_value(const struct parser *p, const struct token *at);
/* Takes a name, in quotes or not; `what` is what is expected, for messages. */
frit_status parse_take_name(struct parser *p, const char *what, struct token *out);
/* Adds a value of this name. */
frit_status parse_define(struct parser *p, const struct token *at, bool result);
/* Makes this a second name of a value; *name is the script's copy. */
frit_status parse_alias(struct parser *p, const struct token *at, uint32_t value,
                        const char **name);
frit_status parse_input(struct parser *p, bool is_const);

#endif
