/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of collectives. */
#include <string.h>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/shape/shape.h"

frit_status shape_rule_flat(struct shape_call *s)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < s->call->n_in; i++)
        TRY(shape_add(s, total, op_elements(shape_in(s, i)), &total));
    return shape_set(s, 0, 1, &total);
}

static frit_status check_ranks(const struct shape_call *s, int64_t ranks)
{
    TRY(shape_rank(s, 0, 1, FRIT_MAX_RANK));
    return ranks >= 1 ? FRIT_OK : shape_fail(s, "ranks is %lld, at least 1", (long long)ranks);
}

static frit_status set_first_dim(const struct shape_call *s, int64_t first)
{
    const struct op_type *x = shape_in(s, 0);
    int64_t dims[FRIT_MAX_RANK];

    memcpy(dims, x->dims, sizeof(dims));
    dims[0] = first;
    return shape_set(s, 0, x->rank, dims);
}

frit_status shape_rule_all_gather(struct shape_call *s)
{
    const frit_attrs_all_gather *a = s->call->attrs;
    int64_t first;

    TRY(check_ranks(s, a->ranks));
    TRY(shape_mul(s, shape_in(s, 0)->dims[0], a->ranks, &first));
    return set_first_dim(s, first);
}

frit_status shape_rule_reduce_scatter(struct shape_call *s)
{
    const frit_attrs_reduce_scatter *a = s->call->attrs;

    TRY(check_ranks(s, a->ranks));
    if (shape_in(s, 0)->dims[0] % a->ranks)
        return shape_fail(s, "the first dim is not a multiple of the %lld ranks",
                          (long long)a->ranks);
    return set_first_dim(s, shape_in(s, 0)->dims[0] / a->ranks);
}
