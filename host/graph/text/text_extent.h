/* SPDX-License-Identifier: Apache-2.0 */
/* Extents in attributes: whole numbers, named dims, and arithmetic on them. */
#ifndef TEXT_TEXT_EXTENT_H
#define TEXT_TEXT_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

struct parser;
struct script;

/* Terms of the script, in postfix order. */
struct script_extent {
    uint32_t term, n_terms;
};

/* Whether an extent may begin with the token. */
bool parse_at_extent(const struct parser *p);
/* Takes an extent; `what` is the attribute, for messages. */
frit_status parse_extent(struct parser *p, const char *what, struct script_extent *out);
/* The number, if the extent is nothing else; its terms are dropped then. */
bool extent_is_number(struct script *script, const struct script_extent *extent, int64_t *out);
/* The value where dim k has the extent dims[k]; NULL, or why there is none ("divides by 0"). */
const char *extent_value(const struct script *script, const struct script_extent *extent,
                         const int64_t *dims, int64_t *out);

#endif
