/* SPDX-License-Identifier: Apache-2.0 */
/* What decompositions are written with: each function appends one op and gives its result, so that
 * a decomposition reads like a formula.  After a failure nothing is appended any more and the
 * status stays; what is returned then is only good for passing on. */
#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "graph/graph.h"

/* A value of the graph or a scalar. */
typedef struct graph_operand term;

/* A composite op that is being decomposed. */
struct build {
    struct graph *graph;
    const struct op_call *call;    /* checked */
    struct op_type out;            /* of its first result */
    term results[FRIT_OP_MAX_OUT]; /* from 1 on set by the decomposition, which returns result 0 */
    uint32_t dtype;                /* in which to compute: of the first operand, f32 if widened */
    term *in;                      /* ABSENT where they are */
    frit_status status;
    frit_err *err;
};

/* The operand of the call, in the type in which to compute; appends nothing. */
term b_in(const struct build *b, uint32_t index);
bool b_has(const struct build *b, uint32_t index);
/* The type of a tensor term; all zero after a failure. */
struct op_type b_type(const struct build *b, term x);

/* A number as a scalar operand; whole numbers do for integer types. */
term b_number(double value);
term b_scalar(frit_scalar scalar);

/* Any row; NULL attributes are all defaults. */
term b_op(struct build *b, uint32_t op, uint32_t n_in, const term *in, const void *attrs);
/* A row with results that are only computed where they are wanted: all of them. */
void b_op_all(struct build *b, const struct graph_call *call, term out[FRIT_OP_MAX_OUT]);

/* ---- elementwise ---- */

term b_abs(struct build *b, term x);
term b_neg(struct build *b, term x);
term b_exp(struct build *b, term x);
term b_expm1(struct build *b, term x);
term b_log(struct build *b, term x);
term b_log1p(struct build *b, term x);
term b_sqrt(struct build *b, term x);
term b_erf(struct build *b, term x);
term b_sin(struct build *b, term x);
term b_cos(struct build *b, term x);
term b_tanh(struct build *b, term x);
term b_floor(struct build *b, term x);
term b_not(struct build *b, term x);

/* Two scalars are allowed: the first becomes a tensor of rank 0 and type b->dtype. */
term b_add(struct build *b, term x, term y);
term b_or(struct build *b, term x, term y);
term b_sub(struct build *b, term x, term y);
term b_mul(struct build *b, term x, term y);
term b_div(struct build *b, term x, term y);
term b_rem(struct build *b, term x, term y);
term b_shr(struct build *b, term x, term y);
term b_and(struct build *b, term x, term y);
term b_maximum(struct build *b, term x, term y);
term b_minimum(struct build *b, term x, term y);
term b_atan2(struct build *b, term y, term x);
term b_hypot(struct build *b, term x, term y);
term b_eq(struct build *b, term x, term y);
term b_lt(struct build *b, term x, term y);
term b_le(struct build *b, term x, term y);
term b_where(struct build *b, term mask, term x, term y);

/* x / y for a y of one element per row of x: computed as x * (1 / y), so that there is one division
 * per row; exactly divided in f64. */
term b_div_rows(struct build *b, term x, term y);

/* ---- the others ---- */

term b_full(struct build *b, uint32_t dtype, frit_scalar value, uint32_t rank, const int64_t *dims);
/* Nothing to do where x has that type. */
term b_cast(struct build *b, term x, uint32_t dtype);
term b_copy(struct build *b, term x);
/* Slices of x along the axis at the numbers in `index`. */
term b_select(struct build *b, term x, term index, uint32_t axis);
term b_reshape(struct build *b, term x, uint32_t rank, const int64_t *dims);
term b_expand(struct build *b, term x, uint32_t rank, const int64_t *dims);
/* Elements start..stop - 1 of one axis. */
term b_slice(struct build *b, term x, uint32_t axis, int64_t start, int64_t stop);
/* The last two dims swapped. */
term b_swap_last(struct build *b, term x);
/* Dim i of the result is dim order[i] of x. */
term b_permute(struct build *b, term x, const int64_t *order);
/* Zeros before, after and between the elements, per dim; NULL: none. */
term b_pad(struct build *b, term x, const int64_t *low, const int64_t *high, const int64_t *inner);
term b_cat(struct build *b, uint32_t n, const term *xs, uint32_t axis);
term b_matmul(struct build *b, term x, term y);
/* op is a row of the record `reduce`. */
term b_reduce(struct build *b, uint32_t op, term x, const frit_axes *axes, bool keep);
/* scatter with `update` (FRIT_CHOICE_update_*). */
term b_scatter(struct build *b, const term in[3], uint32_t axis, int64_t update);
/* 0, 1, .. n - 1, of type i64. */
term b_arange(struct build *b, int64_t n);
/* The sum over axes divided by the count, in the type of x. */
term b_mean(struct build *b, term x, const frit_axes *axes, bool keep);

/* decompose_<row> for every row of the list: its first result; the others go to b->results. */
#define DECOMPOSE(row, mode)       term decompose_##row(struct build *b);
#define DECOMPOSE_OTHER(row, form) term decompose_##row##_##form(struct build *b);
#include "graph/decompose/decompose.def"

#endif
