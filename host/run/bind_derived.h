/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a launch derives from its operands (frit_derived): found where an earlier launch
 * derived it from the same contents, else filled in this one and kept with the operand's buffer. */
#ifndef RUN_BIND_DERIVED_H
#define RUN_BIND_DERIVED_H

#include <stdbool.h>

#include <frit/program.h>

#include "memory/derived.h"

struct buffer;
struct launch;
struct value;

/* One derived memory of a launch. */
struct derived_use {
    bool kept;        /* with the operand; false: it is a workspace, filled in each launch */
    bool fill;        /* this launch derives it */
    uint32_t arg;     /* the operand */
    uint64_t content; /* these three only where it is kept */
    struct buffer *memory;
    struct derived_key key;
};

/* After the operands are bound: room for as many changes is reserved in the frame.  Writes
 * launch->derived and its operands' content_id. */
frit_status launch_bind_derived(struct launch *l, frit_err *err);

/* The key of the memory that prepare requires to be derived from an operand. */
void derived_key_of(const frit_derived_spec *spec, const struct value *operand,
                    struct derived_key *out);

#endif
