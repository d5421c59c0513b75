/* SPDX-License-Identifier: Apache-2.0 */
/* Constants whose elements stand in the program. */
#ifndef TEXT_TEXT_CONST_H
#define TEXT_TEXT_CONST_H

#include <stdbool.h>

#include <frit/status.h>

#include "base/str.h"
#include "graph/op.h"

struct parser;
struct script_input;

/* Whether elements may begin with the token. */
bool parse_at_constant(const struct parser *p);
/* Takes a number, which stands for every element, or nested lists, and sets data and data_type. */
frit_status parse_constant(struct parser *p, struct script_input *input);
/* The elements as parse_constant takes them. */
void constant_print(const struct op_type *type, const void *data, struct str *out);

#endif
