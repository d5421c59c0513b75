/* SPDX-License-Identifier: Apache-2.0 */
/* The state of emitting an expression.  Fields are values of the module, or KIR_NONE while not
 * emitted, if nothing else is said. */
#ifndef LOWER_EXPR_EMIT_H
#define LOWER_EXPR_EMIT_H

#include "lower/expr/expr.h"

/* An index expression that the module computes. */
struct index {
    struct space_expr at;
    uint32_t value;
    uint32_t partial, done; /* sum of the constant and of the terms whose bits are set in `done` */
    uint32_t c, k[SPACE_VARS]; /* parameters */
};

/* A leaf of the space, which is computed in the module. */
struct leaf {
    uint32_t value;
    uint32_t index; /* number in `indices` of space_leaf.of */
    struct sched_divisor by;
    uint32_t first, second; /* parameters: bounds of the launch (`source` and `step` of the leaf) */
    uint32_t node, last; /* SPACE_LOADED: the node of the loaded number; parameter: its maximum */
};

/* The condition 0 <= index < end of a GUARD. */
struct check {
    uint32_t index;
    int64_t end;
    uint32_t param, value;
};

/* An entry of the undo log. */
struct change {
    uint32_t *slot, was;
};

struct expr_emitter {
    struct index *indices;
    uint32_t *node_index, *store_index, *coord_index; /* numbers in `indices` */
    uint32_t *value;                                  /* per node */
    uint32_t (*end)[FRIT_OP_MAX_IN];                  /* per node: parameters of a JOIN */
    uint32_t *first_check; /* per node: the first of a GUARD in `node_check` */
    uint32_t *node_check;  /* numbers in `checks` */
    uint32_t *fill;        /* per node: of a GUARD */
    uint32_t *scalar;      /* per scalar of the block */
    uint32_t dim[SPACE_DIMS];
    uint32_t shift_dim, shift; /* numbers: see expr_shift */
    struct leaf leaf[SPACE_LEAVES];
    uint32_t mask;
    bool hoisting;       /* expr_hoist runs: emits no loads, since masks are not set yet */
    int64_t align_elems; /* alignment in elements of the smallest dtype, a power of 2 */
    uint32_t n_indices, n_checks;
    struct check *checks;
    uint32_t n_log, log_capacity;
    struct change *log;
};

#endif
