/* SPDX-License-Identifier: Apache-2.0 */
/* A list of ops over numbered values, in program order: what a text program becomes once its dims
 * are known, what a composite op decomposes into, and what a recorded segment is printed from.
 *
 * Each value has one producer; every op passed op_check when it was appended.  Threads: one at a
 * time. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/arena.h"
#include "graph/op.h"

#define GRAPH_NO_VALUE UINT32_MAX

enum graph_kind { GRAPH_INPUT = 1, GRAPH_CONST, GRAPH_RESULT };

struct graph_value {
    enum graph_kind kind;
    struct op_type type;
    const char *name; /* NULL: print %N */
    const char *file; /* INPUT, CONST: where the value comes from by default, as written, or NULL */
    const void *data; /* CONST: its elements, or NULL */
};

struct graph_operand {
    uint32_t kind;  /* FRIT_OPERAND_* */
    uint32_t value; /* TENSOR */
    uint32_t dtype; /* SCALAR in a graph: type it is used as; ignored in calls */
    frit_scalar scalar;
};

struct graph_op {
    uint32_t op;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t line; /* of the text it came from, 0 if none */
    struct graph_operand *in;
    void *attrs;                   /* record as op_check left it, NULL for `none` */
    uint32_t out[FRIT_OP_MAX_OUT]; /* GRAPH_NO_VALUE: not wanted */
};

/* All zero is an empty graph. */
struct graph {
    struct arena arena;
    struct graph_value *values;
    struct graph_op *ops;
    uint32_t *outputs;         /* values that the graph is for */
    const char **output_names; /* of each; NULL: the value's */
    uint32_t n_values, n_ops, n_outputs;
    uint32_t values_capacity, ops_capacity, outputs_capacity, output_names_capacity;
};

void graph_fini(struct graph *graph);

/* The name is copied; NULL for none. */
frit_status graph_input(struct graph *graph, enum graph_kind kind, const char *name,
                        const struct op_type *type, uint32_t *value, frit_err *err);

/* What to append.  `attrs` is the row's record and is copied; NULL means all defaults. */
struct graph_call {
    uint32_t op;
    uint32_t n_in;
    uint32_t wanted; /* bit k: XOUT output k is wanted */
    uint32_t line;
    const struct graph_operand *in;
    const void *attrs;
};

/* Checks and appends; `out` gets a value (or GRAPH_NO_VALUE) per output of the row.  On failure the
 * graph is as before. */
frit_status graph_append(struct graph *graph, const struct graph_call *call,
                         uint32_t out[FRIT_OP_MAX_OUT], frit_err *err);
/* The same for what passed the check elsewhere: a value, and an op whose outputs are values that
 * exist; operands and attributes are copied. */
frit_status graph_add_value(struct graph *graph, enum graph_kind kind, const struct op_type *type,
                            uint32_t *value, frit_err *err);
frit_status graph_add_op(struct graph *graph, const struct graph_op *op, frit_err *err);
/* Empties it, keeping the memory. */
void graph_reset(struct graph *graph);
/* Drops the ops whose results nothing uses, but those with effects, and what only they use, but
 * inputs. Values get other numbers, in their order. */
frit_status graph_prune(struct graph *graph, frit_err *err);
/* A value may be an output more than once. */
frit_status graph_output(struct graph *graph, uint32_t value, frit_err *err);
/* The same under a name of its own, which is copied; NULL: the value's. */
frit_status graph_output_named(struct graph *graph, uint32_t value, const char *name,
                               frit_err *err);

/* Of the op that has most. */
uint32_t graph_max_operands(const struct graph *graph);

/* Operands as op_check wants them; their values must exist. */
void graph_operands(const struct graph *graph, const struct graph_operand *in, uint32_t n_in,
                    struct op_input *out);

#endif
