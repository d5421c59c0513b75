/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An odometer over the pushed dims.  The positions are kept by adding and taking back strides,
 * never by multiplying an index, so that negative and zero strides need no case of their own. */
#include "util/walk.h"

#include <string.h>

void walk_init(struct walk *walk, enum walk_mode mode, uint32_t n)
{
    memset(walk, 0, sizeof *walk);
    walk->mode = mode;
    walk->n = n;
}

/* Whether the last dim's stride of every operand just spans the new dim. */
static bool continues(const struct walk *walk, int64_t extent, const int64_t *strides)
{
    if (walk->rank == 0)
        return false;
    for (uint32_t k = 0; k < walk->n; k++)
        if (walk->strides[walk->rank - 1][k] != strides[k] * extent)
            return false;
    return true;
}

void walk_push(struct walk *walk, int64_t extent, const int64_t *strides)
{
    if (extent == 0)
        walk->empty = true;
    if (extent <= 1)
        return;
    if (continues(walk, extent, strides))
        walk->dims[walk->rank - 1] *= extent;
    else
        walk->dims[walk->rank++] = extent;
    memcpy(walk->strides[walk->rank - 1], strides, walk->n * sizeof *strides);
}

bool walk_first(struct walk *walk)
{
    bool rows = walk->mode == WALK_ROWS && walk->rank > 0;

    memset(walk->index, 0, sizeof walk->index);
    memset(walk->at, 0, sizeof walk->at);
    walk->count = rows ? walk->dims[walk->rank - 1] : 1;
    for (uint32_t k = 0; k < walk->n; k++)
        walk->step[k] = rows ? walk->strides[walk->rank - 1][k] : 0;
    return !walk->empty;
}

bool walk_next(struct walk *walk)
{
    uint32_t d = walk->rank;

    if (walk->mode == WALK_ROWS && d > 0)
        d--;
    while (d-- > 0) {
        bool more = ++walk->index[d] < walk->dims[d];
        int64_t steps = more ? 1 : 1 - walk->dims[d];

        for (uint32_t k = 0; k < walk->n; k++)
            walk->at[k] += steps * walk->strides[d][k];
        if (more)
            return true;
        walk->index[d] = 0;
    }
    return false;
}
