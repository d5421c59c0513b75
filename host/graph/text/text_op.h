/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of statements with an op: "names = op operands, attributes". */
#ifndef TEXT_TEXT_OP_H
#define TEXT_TEXT_OP_H

#include <stdbool.h>

#include <frit/status.h>

struct result_names;
struct parser;
struct script_step;
struct token;

/* A list of names for the results of an op, separated by commas. */
frit_status parse_result_names(struct parser *p, struct result_names *names);
/* From the op's name to the end of the statement; `names` become the names of its results. */
frit_status parse_op(struct parser *p, const struct result_names *names);
/* Appends a copy of the step to the script. */
frit_status parse_add_step(struct parser *p, const struct script_step *step);
/* Whether it is the _ of a result without a name. */
bool parse_is_unwanted(const struct token *name);
/* Whether the line ends after the token. */
bool parse_at_only_token(const struct parser *p);
/* Whether an attribute begins here: the token is a name and the next one '='. */
bool parse_at_attr(const struct parser *p);

#endif
