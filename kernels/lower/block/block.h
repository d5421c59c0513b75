/* SPDX-License-Identifier: Apache-2.0 */
/* A block: the relative ops that a program is for, copied, with values numbered 0, 1, ... as they
 * appear (operands before outputs).  A closed block is read by any thread. */
#ifndef LOWER_BLOCK_H
#define LOWER_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/op.h>
#include <frit/program.h>

#include "base/arena.h"
#include "base/str.h"

#define BLOCK_NONE UINT32_MAX

struct block_value {
    uint32_t dtype, rank;
    uint32_t extent[FRIT_MAX_RANK]; /* 0, 1, or number in the block's list + 2 */
    uint32_t maker;                 /* op, or BLOCK_NONE: an argument */
    uint32_t dies;                  /* op after which nobody has it, or BLOCK_NONE */
    uint32_t number;                /* the host's */
    uint32_t input, output;         /* number among the program's inputs, outputs, or BLOCK_NONE */
    uint32_t n_uses;                /* by ops of the block */
};

struct block_input {
    uint32_t kind;   /* FRIT_OPERAND_* */
    uint32_t dtype;  /* SCALAR: the type it is used as */
    uint32_t value;  /* TENSOR */
    uint32_t scalar; /* SCALAR: number in frit_launch.scalars */
};

struct block_op {
    uint32_t id;
    uint32_t n_in, n_out;
    uint32_t first_scalar, n_scalars; /* all of the op's in frit_launch.scalars */
    uint32_t first_bound;             /* in frit_launch.bounds: the op's first */
    uint32_t n_extra;                 /* of the scalars, the last */
    uint32_t n_dead;
    const struct block_input *in;
    const uint32_t *out;  /* values, BLOCK_NONE: not wanted */
    const uint32_t *dead; /* values that nobody has after it, each in the list of one op */
    const void *attrs;    /* of the row's record, its whole size */
};

/* From the host's numbers to those here: open addressing, a power of two of slots. */
struct block_numbers {
    struct block_number {
        uint32_t host, own; /* own: number here + 1; 0: the slot is empty */
    } * slots;
    uint32_t capacity;
};

struct block {
    struct arena arena;
    uint32_t n_ops, ops_room;
    struct block_op *ops;
    uint32_t n_values, values_room;
    struct block_value *values;
    uint32_t n_inputs, n_outputs; /* filled by block_close */
    uint32_t *inputs, *outputs;   /* values */
    uint32_t n_scalars, n_bounds, n_extents, extents_room;
    uint32_t *extents; /* the host's number of each */
    struct block_numbers value_numbers, extent_numbers;
};

void block_init(struct block *block);
void block_fini(struct block *block);
/* Appends a relative op.  FRIT_UNSUPPORTED: a rank, type or layout of numbers that blocks do not
 * know; then, or without memory, the block is as before. */
frit_status block_push(struct block *block, const frit_op_desc *op, frit_err *err);
/* Forgets everything. */
void block_reset(struct block *block);
/* `to` is no block before, and an empty one on failure. */
frit_status block_copy(const struct block *from, struct block *to, frit_err *err);
/* Numbers inputs and outputs as fuser.h says, over the first `n_ops`, which the block is cut to. */
frit_status block_close(struct block *block, uint32_t n_ops, frit_err *err);

/* Of a block, closed or not, cut to its first `n_ops` ops. */
bool block_is_output(const struct block *block, uint32_t value, uint32_t n_ops);

/* The bytes of a closed block: equal ones for blocks of equal ops. */
void block_write(const struct block *block, struct str *out);

/* Concrete extents by number from the arguments' dims; an extent that no argument has is
 * FRIT_UNSUPPORTED.  `extents` has n_extents + 2. */
frit_status block_extents(const struct block *block, const frit_signature *sig, int64_t *extents,
                          frit_err *err);

#endif
