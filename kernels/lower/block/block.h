/* SPDX-License-Identifier: Apache-2.0 */
/* A block: copies of the ops that a program covers, with extents as numbers instead of sizes.
 * Values are numbered 0, 1, ... in order of first use, an op's operands before its outputs.  A
 * closed block may be read by any thread. */
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
    uint32_t extent[FRIT_MAX_RANK]; /* 0 or 1 for those sizes, else 2 + index in block.extents */
    uint32_t maker;                 /* op that computes it; BLOCK_NONE: it is an argument */
    uint32_t dies;                  /* op after which it is not used any more, or BLOCK_NONE */
    uint32_t number;                /* the host's number of the value */
    uint32_t input, output; /* index among the program's inputs, outputs; BLOCK_NONE: it is none */
    uint32_t n_uses;        /* by ops of the block */
};

struct block_input {
    uint32_t kind;   /* FRIT_OPERAND_* */
    uint32_t dtype;  /* SCALAR: the type that the op computes with */
    uint32_t value;  /* TENSOR */
    uint32_t scalar; /* SCALAR: index in frit_launch.scalars */
};

struct block_op {
    uint32_t id;
    uint32_t n_in, n_out;
    uint32_t first_scalar,
        n_scalars; /* in frit_launch.scalars: of operands, then of attributes, then extra ones */
    uint32_t first_bound; /* in frit_launch.bounds */
    uint32_t n_extra;     /* number of extra scalars, which are the op's last */
    uint32_t n_dead;
    const struct block_input *in;
    const uint32_t *out; /* values; BLOCK_NONE: the result is not used */
    const uint32_t
        *dead;         /* values that are not used after this op; each is in the list of one op */
    const void *attrs; /* the attribute record of the op kind, in full size */
};

/* Maps the host's numbers to numbers of the block: open addressing, a power of two of slots. */
struct block_numbers {
    struct block_number {
        uint32_t host, own; /* own: 1 + number in the block; 0: the slot is empty */
    } * slots;
    uint32_t capacity;
};

struct block {
    struct arena arena;
    uint32_t n_ops, ops_capacity;
    struct block_op *ops;
    uint32_t n_values, values_capacity;
    struct block_value *values;
    uint32_t n_inputs, n_outputs; /* set by block_close */
    uint32_t *inputs, *outputs;   /* values */
    uint32_t n_scalars, n_bounds, n_extents, extents_capacity;
    uint32_t *extents; /* the host's numbers */
    struct block_numbers value_numbers, extent_numbers;
};

void block_init(struct block *block);
void block_fini(struct block *block);
/* Appends an op with relative extents.  FRIT_UNSUPPORTED: the op kind, its revision, a dtype, a
 * rank or an operand kind is not supported.  After a failure the block is as before. */
frit_status block_push(struct block *block, const frit_op_desc *op, frit_err *err);
/* Removes all ops and values. */
void block_reset(struct block *block);
/* Initialises `to`, which needs block_fini after success only. */
frit_status block_copy(const struct block *from, struct block *to, frit_err *err);
/* Truncates the block to its first `n_ops` ops and numbers inputs and outputs as frit/program.h
 * describes. */
frit_status block_close(struct block *block, uint32_t n_ops, frit_err *err);

/* Whether the value would be an output of the block's first `n_ops` ops. */
bool block_is_output(const struct block *block, uint32_t value, uint32_t n_ops);

/* Serialises a closed block: blocks of equal ops give equal bytes. */
void block_write(const struct block *block, struct str *out);

/* Whether the size of an extent is known; `ctx` is the caller's. */
typedef bool block_known(const void *ctx, uint32_t extent);
/* The extent that follows from the others of a reshape, since both sides have as many elements;
 * BLOCK_NONE: the op is not a reshape, or none follows. */
uint32_t block_solved_by(const struct block *block, const struct block_op *op, block_known *known,
                         const void *ctx);
/* Computes the size of each extent from the arguments' dims and from reshapes; FRIT_UNSUPPORTED if
 * an extent follows from neither.  `extents` has n_extents + 2 elements. */
frit_status block_extents(const struct block *block, const frit_signature *sig, int64_t *extents,
                          frit_err *err);

#endif
