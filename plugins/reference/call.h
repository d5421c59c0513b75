/* SPDX-License-Identifier: Apache-2.0 */
/* What the function of a row is given, and how it reads it.
 *
 * The host has checked element types, dims and attributes: nothing here can fail.  Threads: a call
 * belongs to the thread that runs the submit. */
#ifndef CALL_H
#define CALL_H

#include <frit/program.h>

#include "util/walk.h"
#include "value.h"

struct program;

struct call {
    const struct program *program;
    const frit_launch *launch;
};

/* A tensor in memory. */
struct view {
    char *data; /* element 0; NULL: absent */
    uint32_t dtype;
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK]; /* in bytes */
};

uint32_t call_n_in(const struct call *call);
/* Tensor operand `i` of the row; data is NULL where it is a scalar or absent. */
struct view call_in(const struct call *call, uint32_t i);
/* Output `k` of the row; data is NULL where it is not wanted. */
struct view call_out(const struct call *call, uint32_t k);
/* The element type as which operand `i`, tensor or scalar, is used. */
uint32_t call_dtype(const struct call *call, uint32_t i);

/* Scalar operand `i` as it was given, in the kind of its type. */
union value call_scalar(const struct call *call, uint32_t i);
/* The `k`-th REAL attribute that is given at launch. */
double call_real(const struct call *call, uint32_t k);
/* The words the host adds to rows that draw random numbers: the seed, and the op counter with the
 * ordinal. */
uint64_t call_seed(const struct call *call);
uint64_t call_counter(const struct call *call);
/* The attributes other than REAL that are given at launch, flattened. */
const int64_t *call_bounds(const struct call *call);
/* The row's record; only its KEY fields are set. */
const void *call_attrs(const struct call *call);
/* The memory that a row which needs some is given; NULL where this call needs none. */
void *call_workspace(const struct call *call);
/* Of WIDE_SUMS rows.  Output `k` to compute in: doubles of its dims in the workspace, or the output
 * itself where its type is as good; data is NULL where it is not wanted. */
struct view call_wide(const struct call *call, uint32_t k);
/* The same, all 0. */
struct view call_sums(const struct call *call, uint32_t k);
/* Rounds to output `k` what was computed in its call_wide; nothing to do where it is not wanted. */
void call_round(const struct call *call, uint32_t k, const struct view *wide);

/* Bytes from an element to the next along dim `d` of a result of `rank`, 0 where the view
 * broadcasts. */
int64_t view_stride(const struct view *view, uint32_t rank, uint32_t d);
/* The view without dim `axis`. */
struct view view_without(const struct view *view, uint32_t axis);
/* The dims from `first` on, at element 0 of those before. */
struct view view_tail(const struct view *view, uint32_t first);
/* A space over the dims of views[0] whose operands are all the given views, broadcast to them. */
void view_walk(struct walk *walk, enum walk_mode mode, const struct view *const *views, uint32_t n);
/* Copies elements as they are; the types are the same, the dims are `to`'s. */
void view_copy(const struct view *to, const struct view *from);
/* Copies elements of one kind, rounding them to `to`'s type. */
void view_convert(const struct view *to, const struct view *from);
/* Writes one value to every element. */
void view_fill(const struct view *to, union value value);

#endif
