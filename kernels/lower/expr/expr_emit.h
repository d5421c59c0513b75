/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of an expression: what is known while it is emitted. */
#ifndef LOWER_EXPR_EMIT_H
#define LOWER_EXPR_EMIT_H

#include "lower/expr/expr.h"

/* A place that is computed: values or KIR_NONE, but for `done`. */
struct site {
    struct space_expr at;
    uint32_t value;
    uint32_t partial, done; /* sum of the terms whose bits are set in `done`, and of the constant */
    uint32_t c, k[SPACE_VARS]; /* parameters */
};

struct atom {
    uint32_t value;
    uint32_t site; /* of what is divided */
    struct sched_divisor by;
    uint32_t first, second; /* parameters: bounds of the launch */
    uint32_t node, last; /* of one that is found: where, and the parameter that it is not above */
};

/* A coordinate that is to be within a value: Bs or KIR_NONE. */
struct check {
    uint32_t site;
    int64_t end;
    uint32_t param, value;
};

struct change {
    uint32_t *slot, was;
};

struct expr_emitter {
    struct site *sites;
    uint32_t *node_site, *store_site, *place_site;
    uint32_t *value;                 /* per node */
    uint32_t (*end)[FRIT_OP_MAX_IN]; /* per node: parameters of a JOIN */
    uint32_t *first_check;           /* per node: of a GUARD's in `node_check` */
    uint32_t *node_check;
    uint32_t *fill;   /* per node: of a GUARD */
    uint32_t *scalar; /* per scalar of the block */
    uint32_t dim[SPACE_DIMS];
    struct atom atom[SPACE_ATOMS];
    uint32_t mask;
    bool hoisting; /* nothing is loaded: masks are not known yet */
    int64_t even;  /* elements of the smallest argument in an aligned access: a power of 2 */
    uint32_t n_sites, n_checks;
    struct check *checks;
    uint32_t n_log, log_room;
    struct change *log;
};

/* Called when planning ends, and by expr_fini. */
void emit_plan(struct expr *e);
/* Fills in `inputs` of all nodes. */
void emit_inputs(struct expr *e);
void emit_fini(struct expr *e);

#endif
