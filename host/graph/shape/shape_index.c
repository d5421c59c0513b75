/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of indexing, joining and filling. */
#include <string.h>

#include "base/fail.h"
#include "graph/shape/shape.h"

/* How values meet what is there: add and mul want numbers, the others take bool too. */
static frit_status check_update(const struct shape_call *s, int64_t update)
{
    if (shape_in(s, 0)->dtype == FRIT_BOOL &&
        (update == FRIT_CHOICE_update_add || update == FRIT_CHOICE_update_mul))
        return shape_fail(s, "update add and mul take no bool; max is or, min is and");
    return FRIT_OK;
}

/* The dims of x with the extent of `axis` replaced by the count of the index list. */
static frit_status selected_dims(struct shape_call *s, int64_t *axis, int64_t *dims)
{
    const struct op_type *x = shape_in(s, 0);

    TRY(shape_axis(s, axis, x->rank));
    TRY(shape_rank(s, 1, 1, 1));
    memcpy(dims, x->dims, sizeof(x->dims));
    dims[*axis] = shape_in(s, 1)->dims[0];
    return FRIT_OK;
}

frit_status shape_rule_select(struct shape_call *s)
{
    frit_attrs_axis *a = s->call->attrs;
    int64_t dims[FRIT_MAX_RANK];

    TRY(selected_dims(s, &a->axis, dims));
    TRY(shape_set(s, 0, shape_in(s, 0)->rank, dims));
    return shape_indexable(s, shape_in(s, 0)->dims[a->axis]);
}

frit_status shape_rule_select_assign(struct shape_call *s)
{
    frit_attrs_scatter *a = s->call->attrs;
    int64_t dims[FRIT_MAX_RANK];

    TRY(selected_dims(s, &a->axis, dims));
    TRY(shape_dims(s, 2, shape_in(s, 0)->rank, dims));
    TRY(check_update(s, a->update));
    return shape_set_like(s, 0, 0);
}

/* An index of x's rank that stays within x but along `axis`. */
static frit_status check_index(const struct shape_call *s, int64_t *axis)
{
    const struct op_type *x = shape_in(s, 0), *index = shape_in(s, 1);

    TRY(shape_axis(s, axis, x->rank));
    TRY(shape_rank(s, 1, x->rank, x->rank));
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i != *axis && index->dims[i] > x->dims[i])
            return shape_fail(s, "dim %u of index is beyond x's: %lld and %lld", i,
                              (long long)index->dims[i], (long long)x->dims[i]);
    }
    return FRIT_OK;
}

frit_status shape_rule_gather(struct shape_call *s)
{
    frit_attrs_axis *a = s->call->attrs;

    TRY(check_index(s, &a->axis));
    TRY(shape_set_like(s, 0, 1));
    return shape_indexable(s, shape_in(s, 0)->dims[a->axis]);
}

frit_status shape_rule_scatter(struct shape_call *s)
{
    frit_attrs_scatter *a = s->call->attrs;

    TRY(check_index(s, &a->axis));
    TRY(shape_dims(s, 2, shape_in(s, 1)->rank, shape_in(s, 1)->dims));
    TRY(check_update(s, a->update));
    return shape_set_like(s, 0, 0);
}

/* The dims of the slices of x at the coordinates in the last dim of index; *k gets how many those
 * are. */
static frit_status slices_at(const struct shape_call *s, uint32_t *rank, int64_t *dims, uint32_t *k)
{
    const struct op_type *x = shape_in(s, 0), *index = shape_in(s, 1);
    int64_t coordinates;

    TRY(shape_rank(s, 1, 1, FRIT_MAX_RANK));
    coordinates = index->dims[index->rank - 1];
    if (coordinates < 1 || coordinates > (int64_t)x->rank)
        return shape_fail(s, "the last dim of index holds %lld coordinates, x takes 1 to %u",
                          (long long)coordinates, x->rank);
    *k = (uint32_t)coordinates;
    *rank = index->rank - 1 + x->rank - *k;
    memcpy(dims, index->dims, (index->rank - 1) * sizeof(dims[0]));
    memcpy(dims + index->rank - 1, x->dims + *k, (x->rank - *k) * sizeof(dims[0]));
    return FRIT_OK;
}

frit_status shape_rule_gather_nd(struct shape_call *s)
{
    int64_t dims[2 * FRIT_MAX_RANK];
    uint32_t rank = 0, k = 0;

    TRY(slices_at(s, &rank, dims, &k));
    TRY(shape_set(s, 0, rank, dims));
    for (uint32_t i = 0; i < k; i++)
        TRY(shape_indexable(s, shape_in(s, 0)->dims[i]));
    return FRIT_OK;
}

frit_status shape_rule_scatter_nd(struct shape_call *s)
{
    const frit_attrs_update *a = s->call->attrs;
    int64_t dims[2 * FRIT_MAX_RANK];
    uint32_t rank = 0, k = 0;

    TRY(slices_at(s, &rank, dims, &k));
    TRY(shape_dims(s, 2, rank, dims));
    TRY(check_update(s, a->update));
    return shape_set_like(s, 0, 0);
}

/* The dims of the rows of the table at operand `index`. */
static frit_status rows_at(const struct shape_call *s, uint32_t index, uint32_t *rank,
                           int64_t *dims)
{
    TRY(shape_rank(s, 0, 2, 2));
    *rank = shape_in(s, index)->rank + 1;
    memcpy(dims, shape_in(s, index)->dims, sizeof(shape_in(s, index)->dims));
    dims[*rank - 1] = shape_in(s, 0)->dims[1];
    return FRIT_OK;
}

frit_status shape_rule_embedding(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK + 1];
    uint32_t rank = 0;

    TRY(rows_at(s, 1, &rank, dims));
    TRY(shape_set(s, 0, rank, dims));
    return shape_indexable(s, shape_in(s, 0)->dims[0]);
}

frit_status shape_rule_embedding_grad(struct shape_call *s)
{
    int64_t dims[FRIT_MAX_RANK + 1];
    uint32_t rank = 0;

    TRY(rows_at(s, 2, &rank, dims));
    TRY(shape_dims(s, 1, rank, dims));
    return shape_set_like(s, 0, 0);
}

/* ---- joining and filling ---- */

frit_status shape_rule_cat(struct shape_call *s)
{
    frit_attrs_axis *a = s->call->attrs;
    const struct op_type *first = shape_in(s, 0);
    int64_t dims[FRIT_MAX_RANK], total = 0;

    TRY(shape_axis(s, &a->axis, first->rank));
    memcpy(dims, first->dims, sizeof(first->dims));
    for (uint32_t i = 0; i < s->call->n_in; i++) {
        const struct op_type *x = shape_in(s, i);

        if (x->rank != first->rank)
            return shape_fail(s, "operand %u has rank %u, the first has %u", i, x->rank,
                              first->rank);
        for (uint32_t d = 0; d < x->rank; d++) {
            if (d != a->axis && x->dims[d] != first->dims[d])
                return shape_fail(s, "dim %u of operand %u is %lld, of the first %lld", d, i,
                                  (long long)x->dims[d], (long long)first->dims[d]);
        }
        TRY(shape_add(s, total, x->dims[a->axis], &total));
    }
    dims[a->axis] = total;
    return shape_set(s, 0, first->rank, dims);
}

frit_status shape_rule_stack(struct shape_call *s)
{
    frit_attrs_axis *a = s->call->attrs;
    const struct op_type *first = shape_in(s, 0);
    int64_t dims[FRIT_MAX_RANK + 1];

    TRY(shape_axis(s, &a->axis, first->rank + 1));
    for (uint32_t i = 1; i < s->call->n_in; i++) {
        if (!op_type_equal(shape_in(s, i), first))
            return shape_fail(s, "operand %u has other dims than the first", i);
    }
    for (uint32_t d = 0; d <= first->rank; d++)
        dims[d] = d == a->axis ? s->call->n_in : first->dims[d - (d > a->axis)];
    return shape_set(s, 0, first->rank + 1, dims);
}

frit_status shape_rule_pad(struct shape_call *s)
{
    frit_attrs_pad *a = s->call->attrs;
    const struct op_type *x = shape_in(s, 0);
    frit_dims *const lists[] = {&a->low, &a->high, &a->inner};
    int64_t dims[FRIT_MAX_RANK];

    for (int i = 0; i < 3; i++) {
        if (lists[i]->rank != 0 && lists[i]->rank != (int64_t)x->rank)
            return shape_fail(s, "low, high and inner take one number per dim, not %lld",
                              (long long)lists[i]->rank);
        lists[i]->rank = x->rank;
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t gaps = x->dims[d] > 1 ? x->dims[d] - 1 : 0;

        if (a->inner.dim[d] < 0)
            return shape_fail(s, "inner is %lld in dim %u, it must be 0 or more",
                              (long long)a->inner.dim[d], d);
        if (gaps == 0)
            a->inner.dim[d] = 0;
        TRY(shape_mul(s, gaps, a->inner.dim[d], &dims[d]));
        TRY(shape_add(s, dims[d], x->dims[d], &dims[d]));
        TRY(shape_add(s, dims[d], a->low.dim[d], &dims[d]));
        TRY(shape_add(s, dims[d], a->high.dim[d], &dims[d]));
        if (dims[d] < 0)
            return shape_fail(s, "more is cropped from dim %u than there is", d);
    }
    return shape_set(s, 0, x->rank, dims);
}

frit_status shape_rule_repeat(struct shape_call *s)
{
    frit_attrs_repeat *a = s->call->attrs;

    TRY(shape_axis(s, &a->axis, shape_in(s, 0)->rank));
    TRY(shape_set_like(s, 0, 0));
    return shape_mul(s, s->out[0].dims[a->axis], a->times, &s->out[0].dims[a->axis]);
}
