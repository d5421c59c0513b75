/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The ops of a program: one, or as many as a fuser took.
 *
 * A block copies what it is shown.  Its ops name values by their place in the block's own list, and
 * a value knows which argument of the program it is.  Threads: a block belongs to one fuser, or is
 * part of a program, where it is constant. */
#ifndef KIT_BLOCK_H
#define KIT_BLOCK_H

#include <frit/program.h>

#include <stdbool.h>

#include <frit/op_table.h>

enum {
    KIT_IN = FRIT_OP_MAX_IN,
    KIT_OUT = FRIT_OP_MAX_OUT,
    KIT_OPS = 16,
    KIT_ARGS = 16,
    KIT_VALUES = 48,
    KIT_DEAD = KIT_IN + KIT_OUT,
    KIT_NONE = 0xffff
};

/* The record of a row; only KEY fields are set. */
union kit_attrs {
    uint32_t struct_size;
#define FRIT_ATTRS(record) frit_attrs_##record record;
#include <frit/attrs.def>
};

struct kit_op {
    uint32_t id, rev;
    uint32_t n_in, n_out, n_dead;
    uint32_t n_extra; /* launch words of the host, see frit_op_desc */
    frit_operand in[KIT_IN], out[KIT_OUT];
    uint32_t dead[KIT_DEAD];
    uint16_t in_value[KIT_IN];   /* values; KIT_NONE: a scalar, or absent */
    uint16_t out_value[KIT_OUT]; /* KIT_NONE: not wanted */
    uint32_t first_scalar;       /* of its words in frit_launch.scalars */
    uint32_t n_scalars;
    uint32_t first_bound; /* in frit_launch.bounds */
    uint32_t n_bounds;
    union kit_attrs attrs;
};

struct kit_value {
    uint32_t number; /* the host's */
    uint32_t dtype;
    uint16_t maker; /* op, KIT_NONE: it comes from outside */
    uint16_t first; /* op that uses or makes it first */
    uint16_t dies;  /* op that it dies with, KIT_NONE: it is seen later */
    uint16_t arg;   /* of the program, KIT_NONE: it dies inside */
};

struct kit_block {
    uint32_t n_ops, n_values;
    uint32_t accepted; /* the longest prefix that a program can cover */
    uint32_t closed;
    uint32_t n_in, n_args;   /* of the program: set, as `args`, when they are numbered */
    uint16_t args[KIT_ARGS]; /* the value of each; KIT_NONE: none, or that of one before */
    struct kit_value values[KIT_VALUES];
    struct kit_op ops[KIT_OPS];
};

/* Nothing but scalars, and arrays of what has its count, are meant: a copy of what is there. */
void block_copy(struct kit_block *to, const struct kit_block *from);
/* Appends an op.  False, and closed, where there is no room; what was added of it is beyond
 * `accepted`. */
bool block_push(struct kit_block *block, const frit_op_desc *op);
/* Cuts the block down to what it accepts and numbers the arguments as fuser.h says. */
void block_bind(struct kit_block *block);
/* The same for a program of the one op: argument i is operand i, then come its outputs. */
void block_bind_one(struct kit_block *block);
#endif
