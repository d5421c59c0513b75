/* SPDX-License-Identifier: Apache-2.0 */
/* What translations are written with: each function emits one op and gives its result, so that a
 * translation reads like a formula.  NULL in, NULL out: after a problem nothing is emitted any
 * more.  Ops whose operands are all known are computed at once where fold.h knows them. */
#ifndef ONNX_EMIT_H
#define ONNX_EMIT_H

#include <frit/frit.h>

#include "onnx/attr.h"
#include "onnx/import.h"

/* ---- operands of the node ---- */

/* A problem if it is missing. */
val *e_in(struct import_node *n, uint32_t index);
bool e_has(const struct import_node *n, uint32_t index);
/* A problem if these are fractions: places and dims are whole numbers. */
bool e_is_whole(struct import_node *n, const val *x);
/* A tensor's elements as whole numbers; a problem unless they are known and at most 64. */
bool e_ints(struct import_node *n, uint32_t index, struct ints *out);
/* The operand where it is there, else the attribute; false: neither. */
bool e_ints_or_attr(struct import_node *n, uint32_t index, const char *attr, struct ints *out);
/* The first element; a problem unless known. */
int64_t e_int(struct import_node *n, uint32_t index, int64_t otherwise);
double e_real(struct import_node *n, uint32_t index, double otherwise);
/* Operand `index` as a number; `otherwise` where it is absent; a problem unless known. */
val *e_scalar_in(struct import_node *n, uint32_t index, double otherwise);
/* Counts a negative axis from the end; a problem if there is no such axis. */
uint32_t e_axis(struct import_node *n, int64_t axis, uint32_t rank);
uint32_t e_out_count(const struct import_node *n);
bool e_wants(const struct import_node *n, uint32_t index);

/* ---- values ---- */

frit_dims e_dims(const val *x);
uint32_t e_rank(const val *x);
uint32_t e_dtype(const val *x);
int64_t e_elements(const val *x);
bool e_is_float(const val *x);
bool e_is_signed(const val *x);
/* Numbers that stand in the place of tensors. */
val *e_num(struct import_node *n, double value);
val *e_whole(struct import_node *n, int64_t value);
val *e_none(struct import_node *n);
/* A tensor of rank 0 or 1 with known elements. */
val *e_known(struct import_node *n, uint32_t dtype, double value);
val *e_known_ints(struct import_node *n, uint32_t dtype, const int64_t *values, int64_t count);

/* ---- ops ---- */

val *e_op(struct import_node *n, uint32_t op, const void *attrs, uint32_t n_in, val *const *in);
/* All results, those of XOUT slots too. */
bool e_ops(struct import_node *n, uint32_t op, const void *attrs, uint32_t n_in, val *const *in,
           val **out);
#define E_OP(n, op, attrs, ...)                                                    \
    e_op(n, op, attrs, (uint32_t)(sizeof((val *[]){__VA_ARGS__}) / sizeof(val *)), \
         (val *const[]){__VA_ARGS__})

val *e_un(struct import_node *n, uint32_t op, val *x);
val *e_bin(struct import_node *n, uint32_t op, val *a, val *b);
val *e_add(struct import_node *n, val *a, val *b);
val *e_sub(struct import_node *n, val *a, val *b);
val *e_mul(struct import_node *n, val *a, val *b);
val *e_div(struct import_node *n, val *a, val *b);
val *e_max(struct import_node *n, val *a, val *b);
val *e_min(struct import_node *n, val *a, val *b);
val *e_where(struct import_node *n, val *mask, val *a, val *b);
/* The row's first operand where it is that type already. */
val *e_cast(struct import_node *n, val *x, uint32_t dtype);
/* The same to and from packed types. */
val *e_convert(struct import_node *n, val *x, uint32_t dtype);
/* The bits of the elements read as another type. */
val *e_bitcast(struct import_node *n, val *x, uint32_t dtype);
/* The value as one of ONNX's type `narrow`, which Frit holds in a wider one; 0: as it is. */
val *e_narrowed(struct import_node *n, val *x, int32_t narrow);
val *e_like(struct import_node *n, val *x, const val *other);
val *e_reshape(struct import_node *n, val *x, frit_dims dims);
val *e_expand(struct import_node *n, val *x, frit_dims dims);
val *e_permute(struct import_node *n, val *x, const int64_t *order);
/* The last two dims swapped. */
val *e_swap_last(struct import_node *n, val *x);
val *e_slice(struct import_node *n, val *x, uint32_t axis, int64_t start, int64_t stop,
             int64_t step);
/* One index of an axis, which is removed. */
val *e_take(struct import_node *n, val *x, uint32_t axis, int64_t index);
/* The axis from its end to its start. */
val *e_flip(struct import_node *n, val *x, uint32_t axis);
val *e_unsqueeze(struct import_node *n, val *x, uint32_t axis);
val *e_squeeze(struct import_node *n, val *x, uint32_t axis);
/* NULL: none on that side. */
val *e_pad(struct import_node *n, val *x, val *value, const int64_t *low, const int64_t *high);
val *e_cat(struct import_node *n, uint32_t axis, val *const *xs, uint32_t count);
/* The axes of `axes`, or all if it has none. */
val *e_reduce(struct import_node *n, uint32_t op, val *x, frit_axes axes, bool keep);
val *e_select(struct import_node *n, val *x, val *index, uint32_t axis);
val *e_gather(struct import_node *n, val *x, val *index, uint32_t axis);
val *e_matmul(struct import_node *n, val *a, val *b);
/* NumPy's matmul: a vector is a row on the left and a column on the right. */
val *e_matmul_any(struct import_node *n, val *a, val *b);
val *e_full(struct import_node *n, uint32_t dtype, val *value, frit_dims dims);
/* The same of a known value of one element, in its type. */
val *e_full_of(struct import_node *n, val *value, frit_dims dims);
val *e_arange(struct import_node *n, uint32_t dtype, val *start, val *step, int64_t count);
val *e_softmax(struct import_node *n, uint32_t op, val *x, uint32_t axis);
/* x[.., axis, ..] as [dims before, dims from the axis on]. */
frit_dims e_dims_2d(const val *x, uint32_t axis);
/* A record with its size, its fields 0. */
#define E_ATTRS(record)                            \
    {                                              \
        .struct_size = sizeof(frit_attrs_##record) \
    }

/* Indices of an axis of this extent, of which negative ones count from the end, as the table has
 * them. */
val *e_index(struct import_node *n, val *index, int64_t extent);

/* Truth values: whether the index along a new axis is that of `index`. */
val *e_one_hot(struct import_node *n, val *index, uint32_t axis, int64_t depth);

/* Result `index` of the node. */
void e_out(struct import_node *n, uint32_t index, val *x);

#endif
