/* SPDX-License-Identifier: Apache-2.0 */
/* How two values become one: what reductions, scans and scattered updates have in common. */
#ifndef COMBINE_H
#define COMBINE_H

#include <frit/op.h>

#include "value.h"

/* The numbers are those of the attribute `update`. */
enum combine {
    COMBINE_ASSIGN = FRIT_CHOICE_update_assign,
    COMBINE_ADD = FRIT_CHOICE_update_add,
    COMBINE_MUL = FRIT_CHOICE_update_mul,
    COMBINE_MIN = FRIT_CHOICE_update_min,
    COMBINE_MAX = FRIT_CHOICE_update_max
};

typedef union value (*combine_fn)(union value a, union value b);

/* Integers wrap in 64 bits; NaN wins in MIN and MAX and ties keep `a`; ASSIGN gives `b`. */
combine_fn combine_of(enum combine how, enum value_kind kind);
/* The value that changes nothing; for MIN and MAX the far end of the kind.  Not for ASSIGN. */
union value combine_start(enum combine how, enum value_kind kind);

#endif
