/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes at numbers: repeated ones, and ones outside. */
#include <string.h>

#include "host/grad/forms.h"

static const char *const updates[] = {"assign", "add", "mul", "min", "max"};

/* Numbers for an extent; now and then some lie outside. */
static struct words numbers(struct script *s, frit_dims dims, int64_t extent)
{
    return script_chance(s, 40) ? script_index(s, dims, -2, extent + 1)
                                : script_index(s, dims, 0, extent - 1);
}

static const char *some_update(struct script *s)
{
    return updates[script_draw(s, sizeof(updates) / sizeof(updates[0]))];
}

/* Values to write; of products some are 0. */
static struct words written(struct script *s, frit_dims dims, const char *update)
{
    const struct words values = script_operand(s, dims, any);

    if (strcmp(update, "mul") == 0 && script_chance(s, 50))
        script_zeros(s);
    return values;
}

static void select(struct script *s)
{
    const frit_dims dims = script_filled(s, 1, 4, 4);
    const struct words x = script_operand(s, dims, any);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);
    const struct words index = numbers(s, FRIT_SHAPE(script_between(s, 0, 5)), dims.dim[axis]);

    script_line(s, "output y = select %s, %s, axis=%lld", x.text, index.text,
                (long long)(script_chance(s, 20) ? axis - dims.rank : axis));
}

/* Dims of an index for gather and scatter: up to those of x, along the axis any. */
static frit_dims smaller(struct script *s, frit_dims dims, int64_t axis)
{
    for (int64_t d = 0; d < dims.rank; d++)
        dims.dim[d] = d == axis              ? script_between(s, 0, 5)
                      : script_chance(s, 70) ? dims.dim[d]
                                             : script_between(s, 1, dims.dim[d]);
    return dims;
}

static void gather(struct script *s)
{
    const frit_dims dims = script_filled(s, 1, 4, 4);
    const struct words x = script_operand(s, dims, any);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);
    const struct words index = numbers(s, smaller(s, dims, axis), dims.dim[axis]);

    script_line(s, "output y = gather %s, %s, axis=%lld", x.text, index.text, (long long)axis);
}

static void scatter(struct script *s)
{
    const char *update = some_update(s);
    const frit_dims dims = script_filled(s, 1, 4, 4);
    const struct words x = script_operand(s, dims, any);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);
    const frit_dims few = smaller(s, dims, axis);
    const struct words index = numbers(s, few, dims.dim[axis]);
    const struct words values = written(s, few, update);

    script_line(s, "output y = scatter %s, %s, %s, axis=%lld, update=%s", x.text, index.text,
                values.text, (long long)axis, update);
}

/* A last dim of 1 .. rank coordinates. */
static frit_dims coordinates(struct script *s, frit_dims dims)
{
    frit_dims index = script_filled(s, 1, 3, 3);

    index.dim[index.rank - 1] = script_between(s, 1, dims.rank);
    return index;
}

static int64_t least(frit_dims dims, int64_t n)
{
    int64_t least = dims.dim[0];

    for (int64_t d = 1; d < n; d++)
        least = dims.dim[d] < least ? dims.dim[d] : least;
    return least;
}

static void gather_nd(struct script *s)
{
    const frit_dims dims = script_filled(s, 1, 4, 4), at = coordinates(s, dims);
    const struct words x = script_operand(s, dims, any);
    const struct words index = numbers(s, at, least(dims, at.dim[at.rank - 1]));

    script_line(s, "output y = gather_nd %s, %s", x.text, index.text);
}

static void scatter_nd(struct script *s)
{
    const char *update = some_update(s);
    const frit_dims dims = script_filled(s, 1, 4, 4), at = coordinates(s, dims);
    const int64_t k = at.dim[at.rank - 1];
    const struct words x = script_operand(s, dims, any);
    const struct words index = numbers(s, at, least(dims, k));
    frit_dims few = at;
    struct words values;

    few.rank--;
    for (int64_t d = k; d < dims.rank; d++)
        few.dim[few.rank++] = dims.dim[d];
    values = written(s, few, update);
    script_line(s, "output y = scatter_nd %s, %s, %s, update=%s", x.text, index.text, values.text,
                update);
}

static void select_assign(struct script *s)
{
    const char *update = some_update(s);
    const frit_dims dims = script_filled(s, 1, 4, 4);
    const struct words x = script_operand(s, dims, any);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank), n = script_between(s, 0, 5);
    const struct words index = numbers(s, FRIT_SHAPE(n), dims.dim[axis]);
    frit_dims few = dims;
    struct words values;

    few.dim[axis] = n;
    values = written(s, few, update);
    script_line(s, "output y = select_assign %s, %s, %s, axis=%lld, update=%s", x.text, index.text,
                values.text, (long long)axis, update);
}

static void slice_assign(struct script *s)
{
    const frit_dims dims = script_filled(s, 1, 3, 6);
    const struct words x = script_operand(s, dims, any);
    struct words slices = {""};
    frit_dims few = dims;

    for (int64_t d = 0; d < dims.rank; d++) {
        const int64_t step = script_between(s, 1, 2), start = script_between(s, 0, dims.dim[d] - 1);
        const int64_t most = (dims.dim[d] - start + step - 1) / step;

        few.dim[d] = script_between(s, 0, most);
        slices = script_format("%s%s%lld:%lld:%lld", slices.text, d ? ", " : "", (long long)start,
                               (long long)(start + (few.dim[d] ? (few.dim[d] - 1) * step + 1 : 0)),
                               (long long)step);
    }
    script_line(s, "output y = slice_assign %s, %s, slices=[%s]", x.text,
                script_operand(s, few, any).text, slices.text);
}

static void embedding(struct script *s)
{
    const frit_dims dims = script_filled(s, 2, 2, 5);
    const struct words table = script_operand(s, dims, any);

    script_line(s, "output y = embedding %s, %s", table.text,
                numbers(s, script_dims(s, 0, 3, 3), dims.dim[0]).text);
}

const struct form forms_index[] = {{"select", select},
                                   {"gather", gather},
                                   {"scatter", scatter},
                                   {"gather_nd", gather_nd},
                                   {"scatter_nd", scatter_nd},
                                   {"select_assign", select_assign},
                                   {"slice_assign", slice_assign},
                                   {"embedding", embedding},
                                   {0}};
