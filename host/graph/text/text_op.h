/* SPDX-License-Identifier: Apache-2.0 */
/* Statements with an op. */
#ifndef TEXT_TEXT_OP_H
#define TEXT_TEXT_OP_H

#include <stdbool.h>

#include <frit/status.h>

struct parse_names;
struct parser;
struct script_step;

frit_status parse_names(struct parser *p, struct parse_names *names);
/* The op and what follows, whose results get the names. */
frit_status parse_op(struct parser *p, const struct parse_names *names);
frit_status parse_add_step(struct parser *p, const struct script_step *step);
/* The token is a name and the next one '='. */
bool parse_at_attr(const struct parser *p);

#endif
