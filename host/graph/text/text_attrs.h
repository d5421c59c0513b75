/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values of the text form, one reader per field type. */
#ifndef TEXT_TEXT_ATTRS_H
#define TEXT_TEXT_ATTRS_H

#include <frit/status.h>

struct parser;
struct script_step;

/* "attribute=value, ..." to the end of the line, for a step whose op is known. */
frit_status parse_attrs(struct parser *p, struct script_step *step);

#endif
