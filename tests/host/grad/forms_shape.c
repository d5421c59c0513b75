/* SPDX-License-Identifier: Apache-2.0 */
/* Views, copies and joins. */
#include <stdio.h>
#include <string.h>

#include "host/grad/forms.h"

static void plain(struct script *s)
{
    const struct words x = script_operand(s, script_dims(s, 0, 4, 4), any);

    script_line(s, "output y = %s %s", s->row->name, x.text);
}

/* The number of elements in other dims; now and then one of them is left to the op. */
static void reshape(struct script *s)
{
    frit_dims from = script_dims(s, 0, 4, 4), to = from;
    struct words x;

    if (script_chance(s, 50)) {
        to = (frit_dims){
            .rank = 1,
            .dim = {script_chance(s, 50) && script_count(from) ? -1 : (int64_t)script_count(from)}};
    } else if (to.rank > 1) {
        to.rank--;
        to.dim[to.rank - 1] *= to.dim[to.rank];
    }
    x = script_operand(s, from, any);
    script_line(s, "output y = reshape %s, dims=%s", x.text, script_text(to).text);
}

static void permute(struct script *s)
{
    const frit_dims dims = script_dims(s, 1, 5, 3);
    const struct words x = script_operand(s, dims, any);
    int64_t order[FRIT_MAX_RANK];

    for (int64_t d = 0; d < dims.rank; d++) {
        const int64_t at = script_between(s, 0, d);

        order[d] = order[at];
        order[at] = d;
    }
    script_line(s, "output y = permute %s, order=%s", x.text, script_list(order, dims.rank).text);
}

static void expand(struct script *s)
{
    const frit_dims to = script_dims(s, 0, 4, 4);
    frit_dims from = to;
    const int64_t less = to.rank ? script_between(s, 0, 1) : 0;
    struct words x;

    from.rank -= less;
    memmove(from.dim, from.dim + less, (size_t)from.rank * sizeof(*from.dim));
    for (int64_t d = 0; d < from.rank; d++) {
        if (script_chance(s, 40))
            from.dim[d] = 1;
    }
    x = script_operand(s, from, any);
    script_line(s, "output y = expand %s, dims=%s", x.text, script_text(to).text);
}

/* Bounds inside and outside, steps forwards and backwards. */
static struct words some_slices(struct script *s, frit_dims dims)
{
    struct words slices = {""};
    const int64_t n = script_between(s, 1, dims.rank);
    size_t at = 0;

    for (int64_t d = 0; d < n; d++) {
        static const int64_t steps[] = {1, 1, 2, 3, -1, -2};
        const int64_t step = steps[script_draw(s, 6)], extent = dims.dim[d];
        int64_t from = script_between(s, -extent - 1, extent + 1);
        int64_t to = script_between(s, -extent - 1, extent + 1);
        char *text = slices.text + at;
        const size_t room = sizeof(slices.text) - at;

        if (script_chance(s, 20))
            at += (size_t)snprintf(text, room, "%s:", d ? ", " : "");
        else if (script_chance(s, 20))
            at += (size_t)snprintf(text, room, "%s::%lld", d ? ", " : "", (long long)step);
        else
            at += (size_t)snprintf(text, room, "%s%lld:%lld:%lld", d ? ", " : "", (long long)from,
                                   (long long)to, (long long)step);
    }
    return slices;
}

static void slice(struct script *s)
{
    const frit_dims dims = script_dims(s, 1, 4, 5);
    const struct words x = script_operand(s, dims, any);

    script_line(s, "output y = slice %s, slices=[%s]", x.text, some_slices(s, dims).text);
}

static void flip(struct script *s)
{
    const frit_dims dims = script_dims(s, 1, 4, 4);
    const struct words x = script_operand(s, dims, any);

    script_line(s, "output y = flip %s%s", x.text, script_axes(s, dims.rank, true).text);
}

/* Windows that overlap, touch or leave gaps. */
static void unfold(struct script *s)
{
    const frit_dims dims = script_filled(s, 1, 4, 6);
    const struct words x = script_operand(s, dims, any);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);

    script_line(s, "output y = unfold %s, axis=%lld, size=%lld, step=%lld", x.text,
                (long long)(script_chance(s, 20) ? axis - dims.rank : axis),
                (long long)script_between(s, 1, dims.dim[axis]),
                (long long)script_between(s, 0, 4));
}

static void transpose(struct script *s)
{
    const frit_dims dims = script_dims(s, 2, 4, 4);
    const struct words x = script_operand(s, dims, any);

    script_line(s, "output y = transpose %s, axis=%lld, with=%lld", x.text,
                (long long)script_axis(s, dims.rank), (long long)script_axis(s, dims.rank));
}

static void squeeze(struct script *s)
{
    frit_dims dims = script_dims(s, 1, 5, 3);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);
    struct words x;

    dims.dim[axis] = 1;
    x = script_operand(s, dims, any);
    if (script_chance(s, 50))
        script_line(s, "output y = squeeze %s", x.text);
    else
        script_line(s, "output y = squeeze %s, axes=[%lld]", x.text, (long long)axis);
}

static void unsqueeze(struct script *s)
{
    const frit_dims dims = script_dims(s, 0, 4, 4);
    const struct words x = script_operand(s, dims, any);

    script_line(s, "output y = unsqueeze %s, axis=%lld", x.text,
                (long long)script_axis(s, dims.rank + 1));
}

/* A cast rounds; what follows is linear, so that the steps may be large. */
static void cast(struct script *s)
{
    const struct words x = script_operand(s, script_dims(s, 0, 4, 4), any);

    s->step = 0.5;
    s->tolerance = 1e-5;
    script_line(s, "u = cast %s, dtype=f32", x.text);
    if (script_chance(s, 50))
        script_line(s, "output y = mul u, 0.75");
    else
        script_line(s, "output y = cast u, dtype=f64");
}

/* One to four operands that differ in their extents along the axis; one may occur twice. */
static void cat(struct script *s)
{
    frit_dims dims = script_dims(s, 1, 4, 4);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank), n = script_between(s, 1, 4);
    struct words xs[4];

    for (int64_t i = 0; i < n; i++) {
        dims.dim[axis] = script_between(s, 0, 3);
        xs[i] = i && script_chance(s, 20) ? xs[0] : script_operand(s, dims, any);
    }
    script_line(s, "output y = cat %s%s%s%s%s%s%s, axis=%lld", xs[0].text, n > 1 ? ", " : "",
                n > 1 ? xs[1].text : "", n > 2 ? ", " : "", n > 2 ? xs[2].text : "",
                n > 3 ? ", " : "", n > 3 ? xs[3].text : "",
                (long long)(script_chance(s, 20) ? axis - dims.rank : axis));
}

static void stack(struct script *s)
{
    const frit_dims dims = script_dims(s, 0, 3, 4);
    const struct words a = script_operand(s, dims, any), b = script_operand(s, dims, any);

    script_line(s, "output y = stack %s, %s, %s, axis=%lld", a.text, b.text,
                script_chance(s, 30) ? a.text : b.text, (long long)script_axis(s, dims.rank + 1));
}

static void repeat(struct script *s)
{
    const frit_dims dims = script_dims(s, 1, script_chance(s, 5) ? FRIT_MAX_RANK : 4, 3);
    frit_dims small = dims;
    struct words x;

    for (int64_t d = 4; d < small.rank; d++)
        small.dim[d] = 1;
    x = script_operand(s, small, any);
    script_line(s, "output y = repeat %s, axis=%lld, times=%lld", x.text,
                (long long)script_axis(s, dims.rank), (long long)script_between(s, 0, 3));
}

/* Adds, crops, both at once, all of it, and between neighbours. */
static void pad(struct script *s)
{
    const frit_dims dims = script_dims(s, 1, 3, 5);
    const struct words x = script_operand(s, dims, any);
    int64_t low[FRIT_MAX_RANK], high[FRIT_MAX_RANK], inner[FRIT_MAX_RANK];

    for (int64_t d = 0; d < dims.rank; d++) {
        const int64_t extent = dims.dim[d];
        int64_t size;

        inner[d] = script_chance(s, 60) ? 0 : script_between(s, 1, 2);
        size = extent ? extent + (extent - 1) * inner[d] : 0;
        low[d] = script_between(s, -size, 3);
        high[d] = script_between(s, -size, 3);
        if (size + low[d] + high[d] < 0)
            high[d] = -size - low[d];
    }
    script_line(s, "output y = pad %s, %.1f, low=%s, high=%s, inner=%s", x.text,
                script_real(s, -1, 1), script_list(low, dims.rank).text,
                script_list(high, dims.rank).text, script_list(inner, dims.rank).text);
}

const struct form forms_shape[] = {{"reshape", reshape},
                                   {"permute", permute},
                                   {"expand", expand},
                                   {"slice", slice},
                                   {"flip", flip},
                                   {"unfold", unfold},
                                   {"transpose", transpose},
                                   {"squeeze", squeeze},
                                   {"unsqueeze", unsqueeze},
                                   {"copy", plain},
                                   {"cast", cast},
                                   {"cat", cat},
                                   {"stack", stack},
                                   {"repeat", repeat},
                                   {"pad", pad},
                                   {0}};
