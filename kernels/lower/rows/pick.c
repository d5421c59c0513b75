/* SPDX-License-Identifier: Apache-2.0 */
/* Reading at index operands, as maps: the operand's coordinates are the result's, but for the one
 * that an element of the index says. */
#include "lower/rows/rows.h"

static bool dims_fit(const struct pick *p, uint32_t axis)
{
    if (p->rank != p->out_rank || axis >= p->rank)
        return false;
    for (uint32_t d = 0; d < p->rank; d++)
        if (d != axis && p->out[d] > p->dims[d])
            return false;
    return true;
}

static uint32_t axis_of(const struct pick *p)
{
    int64_t axis = ((const frit_attrs_axis *)p->attrs)->axis;

    return axis < 0 || axis >= FRIT_MAX_RANK ? FRIT_MAX_RANK : (uint32_t)axis;
}

bool pick_select(const struct pick *p, const struct space_map *of, struct space_map *in,
                 struct space_map *index, uint32_t *axis)
{
    *axis = axis_of(p);
    if (!dims_fit(p, *axis) || p->index_rank != 1 || p->index[0] != p->out[*axis])
        return false;
    *in = *of;
    *index = (struct space_map){.rank = 1, .at = {of->at[*axis]}};
    return true;
}

bool pick_gather(const struct pick *p, const struct space_map *of, struct space_map *in,
                 struct space_map *index, uint32_t *axis)
{
    *axis = axis_of(p);
    if (!dims_fit(p, *axis) || p->index_rank != p->out_rank)
        return false;
    for (uint32_t d = 0; d < p->out_rank; d++)
        if (p->index[d] != p->out[d])
            return false;
    *in = *index = *of;
    return true;
}

bool pick_embedding(const struct pick *p, const struct space_map *of, struct space_map *in,
                    struct space_map *index, uint32_t *axis)
{
    *axis = 0;
    if (p->rank != 2 || p->out_rank != p->index_rank + 1 || p->out[p->index_rank] != p->dims[1])
        return false;
    for (uint32_t d = 0; d < p->index_rank; d++)
        if (p->index[d] != p->out[d])
            return false;
    *in = (struct space_map){.rank = 2};
    in->at[1] = of->at[p->index_rank];
    *index = *of;
    index->rank = p->index_rank;
    return true;
}
