/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/taps.h"

/* `at` is a whole number. */
static void add_tap(struct import_node *n, struct tap_line *line, val *at, val *weight,
                    int64_t extent, bool zeros)
{
    val *last = e_num(n, (double)(extent - 1));
    val *inside = e_bin(n, FRIT_OP_and, e_bin(n, FRIT_OP_ge, at, e_num(n, 0)),
                        e_bin(n, FRIT_OP_le, at, last));
    const uint32_t k = line->count++;

    line->index[k] = e_cast(n, e_min(n, e_max(n, at, e_num(n, 0)), last), FRIT_I64);
    line->weight[k] = weight;
    line->inside[k] = zeros ? inside : NULL;
}

void taps_nearest(struct import_node *n, struct tap_line *line, val *at, int64_t extent, bool zeros)
{
    *line = (struct tap_line){0};
    add_tap(n, line, e_un(n, FRIT_OP_round, at), NULL, extent, zeros);
}

void taps_linear(struct import_node *n, struct tap_line *line, val *at, int64_t extent, bool zeros)
{
    val *low = e_un(n, FRIT_OP_floor, at), *part = e_sub(n, at, low);

    *line = (struct tap_line){0};
    add_tap(n, line, low, e_sub(n, e_num(n, 1), part), extent, zeros);
    add_tap(n, line, e_add(n, low, e_num(n, 1)), part, extent, zeros);
}

/* NULL is what the operation leaves alone. */
static val *with(struct import_node *n, uint32_t op, val *a, val *b)
{
    return a && b ? e_bin(n, op, a, b) : a ? a : b;
}

/* One neighbour of each place: bit d of `which` says which one along dim d. */
static val *read_corner(struct import_node *n, val *x, const struct tap_line *lines, uint32_t dims,
                        uint32_t which)
{
    val *index = NULL, *weight = NULL, *inside = NULL, *y;
    int64_t batch = x->type.dims[0], channels = x->type.dims[1], count;

    for (uint32_t d = 0; d < dims; d++) {
        const uint32_t k = which >> d & 1;

        if (index)
            index = e_mul(n, index, e_whole(n, x->type.dims[2 + d]));
        index = with(n, FRIT_OP_add, index, lines[d].index[k]);
        weight = with(n, FRIT_OP_mul, weight, lines[d].weight[k]);
        inside = with(n, FRIT_OP_and, inside, lines[d].inside[k]);
    }
    if (n->failed || !index)
        return NULL;
    count = batch ? e_elements(index) / batch : 0;
    index = e_expand(n, e_reshape(n, index, FRIT_SHAPE(batch, 1, count)),
                     FRIT_SHAPE(batch, channels, count));
    y = e_reshape(n, x, FRIT_SHAPE(batch, channels, channels ? -1 : 0));
    y = e_gather(n, y, index, 2);
    if (inside)
        y = e_where(n, e_reshape(n, inside, FRIT_SHAPE(batch, 1, count)), y, e_num(n, 0));
    return weight ? e_mul(n, y, e_reshape(n, weight, FRIT_SHAPE(batch, 1, count))) : y;
}

val *taps_read(struct import_node *n, val *x, const struct tap_line *lines, bool largest)
{
    const uint32_t dims = x ? e_rank(x) - 2 : 0;
    val *y = NULL;

    for (uint32_t which = 0; x && which < 1U << dims && !n->failed; which++) {
        bool exists = true;

        for (uint32_t d = 0; d < dims; d++)
            exists = exists && (which >> d & 1) < lines[d].count;
        if (exists)
            y = with(n, largest ? FRIT_OP_maximum : FRIT_OP_add, y,
                     read_corner(n, x, lines, dims, which));
    }
    return y;
}
