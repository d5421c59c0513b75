/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of custom ops as their plugins see them. */
#ifndef GRAPH_CUSTOM_CALL_H
#define GRAPH_CUSTOM_CALL_H

#include <frit/custom.h>

#include "graph/op.h"

/* A call with the memory it points to, but for the attributes. */
struct custom_view {
    frit_custom_call call;
    frit_custom_operand *in; /* in `fixed` where they fit */
    frit_custom_operand fixed[FRIT_CUSTOM_IN];
    frit_custom_type out[FRIT_CUSTOM_OUT];
    uint64_t none[1]; /* the record of an op without attributes */
};

#endif
