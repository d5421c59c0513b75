/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the plugin `custom` share: its ops, and programs over dense f32 tensors of one
 * shape, for one op or for a block. */
#ifndef CUSTOM_H
#define CUSTOM_H

#include <stdbool.h>

#include <frit/custom.h>
#include <frit/fuser.h>

#include "../driver.h"

/* ops.c: frit.ops/1. */
extern const frit_ops_table custom_ops;

#define CUSTOM_AXPBY "org.frit.test.axpby/1"
#define CUSTOM_TICK  "org.frit.test.tick/1"
#define CUSTOM_NOTE  "org.frit.test.note/1"
#define CUSTOM_SCALE "org.frit.test.scale/1"

typedef struct axpby_attrs {
    uint32_t struct_size;
    uint32_t reserved;
    FRIT_FIELD_REAL(alpha);
    FRIT_FIELD_REAL(beta);
} axpby_attrs;

/* ---- programs ---- */

enum what {
    WHAT_NOTHING,
    WHAT_ADD,
    WHAT_MUL,
    WHAT_NEG,
    WHAT_COPY,
    WHAT_AXPBY,
    WHAT_SCALE,
    WHAT_TICK,
    WHAT_NOTE
};

enum { MAX_NODES = 8, MAX_PLACES = 2 * MAX_NODES };

enum kind { KIND_NONE, KIND_ARG, KIND_NODE, KIND_SCALAR };

/* Where an operand lies: an argument, the result of a node, a scalar. */
struct place {
    uint32_t kind;
    uint32_t index;
};

struct node {
    uint32_t what;
    uint32_t first_scalar; /* of axpby: alpha, beta */
    struct place in[2];
    uint32_t stored; /* 1 + the argument that gets the result, 0: none */
    uint32_t reserved;
};

/* Flat, so that its bytes are its state. */
struct recipe {
    uint32_t n_nodes;
    uint32_t n_args; /* of a block: inputs, then outputs */
    struct node nodes[MAX_NODES];
};

/* Launch scalars of an op. */
uint32_t scalars_of(enum what what);

/* WHAT_NOTHING: not for this driver.  Custom ops are known by name and rev. */
enum what what_of(const frit_op_desc *op);

/* Puts the program's table and self into `out`. */
frit_status program_make(const struct fake *fake, const struct recipe *recipe, frit_program *out,
                         frit_err *err);

/* Slots of the backend. */
frit_status custom_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err);
frit_status custom_op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);
frit_status custom_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err);

/* fuser.c */
extern const frit_fuser_table custom_fusers;

#endif
