/* SPDX-License-Identifier: Apache-2.0 */
/* Element types by name and class. */
#ifndef GRAPH_DTYPE_H
#define GRAPH_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/types.h>

/* "f32" and so on; "?" for a number that is none.  The id of a name, FRIT_NO_DTYPE if there is
 * none. */
const char *dtype_name(uint32_t dtype);
uint32_t dtype_find(frit_str name);
/* FRIT_DTYPE_FLOAT and so on. */
uint32_t dtype_class(uint32_t dtype);

/* Whether all bytes of bools are 0 or 1. */
bool bools_are_clean(const void *bools, uint64_t count);
/* Makes 1 of every byte that is not 0; the arrays may be the same. */
void bools_clean(void *to, const void *from, uint64_t count);

#endif
