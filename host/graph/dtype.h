/* SPDX-License-Identifier: Apache-2.0 */
/* Element types by name and class. */
#ifndef GRAPH_DTYPE_H
#define GRAPH_DTYPE_H

#include <stdint.h>

#include <frit/types.h>

/* "f32" and so on; "?" for a number that is none.  The id of a name, FRIT_NO_DTYPE if there is
 * none. */
const char *dtype_name(uint32_t dtype);
uint32_t dtype_find(frit_str name);
/* FRIT_DTYPE_FLOAT and so on. */
uint32_t dtype_class(uint32_t dtype);

#endif
