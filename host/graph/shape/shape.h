/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules: the dims of an op's results from the dims of its operands and its attributes.
 *
 * A rule is named in the row; it also checks and rewrites the attributes that need the operands'
 * dims, and is the only place that knows what each operand of the row must look like.  Element
 * types, scalars and each attribute by itself were checked before. */
#ifndef GRAPH_SHAPE_H
#define GRAPH_SHAPE_H

#include "graph/op.h"

struct shape_call {
    const frit_op_info *row;
    struct op_call *call;
    struct op_type *out; /* of every output, wanted or not: rank and dims are the rule's to fill;
                            the element type is there unless its letter is NONE */
    frit_err *err;
};

typedef frit_status (*shape_rule)(struct shape_call *s);

/* Runs the rule of the row. */
frit_status shape_infer(const frit_op_info *row, struct op_call *call, struct op_type *out,
                        frit_err *err);

/* ---- what rules are written with ---- */

/* FRIT_INVALID with "op: the text; x f32[2, 3], w f32[4]". */
frit_status shape_fail(const struct shape_call *s, const char *format, ...) FRIT_PRINTF(2, 3);

/* Dims of operand `index`; rank 0 for scalars and absent ones. */
const struct op_type *shape_in(const struct shape_call *s, uint32_t index);
bool shape_has(const struct shape_call *s, uint32_t index);

/* Operand `index` must be a tensor of a rank in the range, or of exactly these dims (if it is
 * there). */
frit_status shape_rank(const struct shape_call *s, uint32_t index, uint32_t low, uint32_t high);
frit_status shape_dims(const struct shape_call *s, uint32_t index, uint32_t rank,
                       const int64_t *dims);

/* Rewrites an axis of a tensor of this rank to count from the front. */
frit_status shape_axis(const struct shape_call *s, int64_t *axis, uint32_t rank);
/* Rewrites a set of axes, ascending; a repeated one is an error. */
frit_status shape_axes(const struct shape_call *s, frit_axes *axes, uint32_t rank);
/* The same where none means all. */
frit_status shape_axes_or_all(const struct shape_call *s, frit_axes *axes, uint32_t rank);

/* Resolves one range per dim of operand 0; `dims` gets what they leave. */
frit_status shape_slices(const struct shape_call *s, frit_slices *slices, int64_t *dims);

/* Sets the dims of a type, keeps its element type.  A rank beyond the largest fails. */
frit_status shape_set(const struct shape_call *s, uint32_t output, uint32_t rank,
                      const int64_t *dims);
/* The dims of an operand. */
frit_status shape_set_like(const struct shape_call *s, uint32_t output, uint32_t operand);
/* Broadcasts `dims` (of rank *rank) with more dims, aligned at the right; false with the dim of the
 * result at `clash` where they do not fit. */
bool shape_broadcast_dims(uint32_t *rank, int64_t *dims, const struct op_type *with,
                          uint32_t *clash);

/* Whether some extent is 0; also of dims whose product is not checked yet. */
bool shape_empty(const struct op_type *type);

/* The extent over which an index operand ranges must not be 0 if anything is read. */
frit_status shape_indexable(const struct shape_call *s, int64_t extent);

/* Product and sum that fail where 63 bits do not hold them. */
frit_status shape_mul(const struct shape_call *s, int64_t a, int64_t b, int64_t *out);
frit_status shape_add(const struct shape_call *s, int64_t a, int64_t b, int64_t *out);

/* shape_custom.c: the rule of every custom op. */
frit_status shape_custom(struct shape_call *s);

/* ---- rules, by file ---- */

/* shape_view.c */
frit_status shape_rule_reshape(struct shape_call *s);
frit_status shape_rule_permute(struct shape_call *s);
frit_status shape_rule_expand(struct shape_call *s);
frit_status shape_rule_slice(struct shape_call *s);
frit_status shape_rule_flip(struct shape_call *s);
frit_status shape_rule_unfold(struct shape_call *s);
frit_status shape_rule_transpose(struct shape_call *s);
frit_status shape_rule_squeeze(struct shape_call *s);
frit_status shape_rule_bitcast(struct shape_call *s);
frit_status shape_rule_unsqueeze(struct shape_call *s);
frit_status shape_rule_slice_assign(struct shape_call *s);

/* shape_collective.c */
frit_status shape_rule_flat(struct shape_call *s);
frit_status shape_rule_all_gather(struct shape_call *s);
frit_status shape_rule_reduce_scatter(struct shape_call *s);

/* shape_map.c */
frit_status shape_rule_same(struct shape_call *s);
frit_status shape_rule_same_all(struct shape_call *s);
frit_status shape_rule_broadcast(struct shape_call *s);
frit_status shape_rule_cross(struct shape_call *s);
frit_status shape_rule_nothing(struct shape_call *s);
frit_status shape_rule_init(struct shape_call *s);
frit_status shape_rule_arange(struct shape_call *s);
frit_status shape_rule_eye(struct shape_call *s);
frit_status shape_rule_raw(struct shape_call *s);
frit_status shape_rule_uniform(struct shape_call *s);
frit_status shape_rule_normal(struct shape_call *s);
frit_status shape_rule_integers(struct shape_call *s);
frit_status shape_rule_quantize(struct shape_call *s);
frit_status shape_rule_dequantize(struct shape_call *s);

/* shape_reduce.c */
frit_status shape_rule_reduce(struct shape_call *s);
frit_status shape_rule_reduce_some(struct shape_call *s);
frit_status shape_rule_arg_reduce(struct shape_call *s);
frit_status shape_rule_scan(struct shape_call *s);
frit_status shape_rule_sort(struct shape_call *s);
frit_status shape_rule_topk(struct shape_call *s);
frit_status shape_rule_norm_axes(struct shape_call *s);
frit_status shape_rule_batch_norm(struct shape_call *s);
frit_status shape_rule_group_norm(struct shape_call *s);
frit_status shape_rule_channels(struct shape_call *s);
frit_status shape_rule_last_dim(struct shape_call *s);

/* shape_index.c */
frit_status shape_rule_select(struct shape_call *s);
frit_status shape_rule_select_assign(struct shape_call *s);
frit_status shape_rule_gather(struct shape_call *s);
frit_status shape_rule_scatter(struct shape_call *s);
frit_status shape_rule_gather_nd(struct shape_call *s);
frit_status shape_rule_scatter_nd(struct shape_call *s);
frit_status shape_rule_embedding(struct shape_call *s);
frit_status shape_rule_embedding_grad(struct shape_call *s);
frit_status shape_rule_cat(struct shape_call *s);
frit_status shape_rule_stack(struct shape_call *s);
frit_status shape_rule_pad(struct shape_call *s);
frit_status shape_rule_repeat(struct shape_call *s);

/* shape_contract.c */
frit_status shape_rule_matmul(struct shape_call *s);
frit_status shape_rule_linear(struct shape_call *s);
frit_status shape_rule_linear_grad_x(struct shape_call *s);
frit_status shape_rule_linear_grad_w(struct shape_call *s);
frit_status shape_rule_attention(struct shape_call *s);
frit_status shape_rule_attention_grad(struct shape_call *s);
frit_status shape_rule_rfft(struct shape_call *s);
frit_status shape_rule_irfft(struct shape_call *s);
frit_status shape_rule_ctc_loss(struct shape_call *s);
frit_status shape_rule_ctc_grad(struct shape_call *s);

/* shape_conv.c */
frit_status shape_rule_conv(struct shape_call *s);
frit_status shape_rule_conv_grad_x(struct shape_call *s);
frit_status shape_rule_conv_grad_w(struct shape_call *s);
frit_status shape_rule_conv_transpose(struct shape_call *s);
frit_status shape_rule_conv_transpose_grad_w(struct shape_call *s);
frit_status shape_rule_deform_conv(struct shape_call *s);
frit_status shape_rule_deform_grad(struct shape_call *s);
frit_status shape_rule_unfold4d(struct shape_call *s);

/* shape_pool.c */
frit_status shape_rule_avg_pool(struct shape_call *s);
frit_status shape_rule_avg_pool_grad(struct shape_call *s);
frit_status shape_rule_max_pool(struct shape_call *s);
frit_status shape_rule_max_pool_grad(struct shape_call *s);
frit_status shape_rule_adaptive(struct shape_call *s);
frit_status shape_rule_adaptive_grad(struct shape_call *s);
frit_status shape_rule_interpolate(struct shape_call *s);
frit_status shape_rule_interpolate_grad(struct shape_call *s);
frit_status shape_rule_grid_sample(struct shape_call *s);

#endif
