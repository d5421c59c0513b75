/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, scans, softmax, norms, sorting and spectra. */
#include <string.h>

#include "host/grad/forms.h"

static void reduce(struct script *s)
{
    const frit_dims dims = strcmp(s->row->name, "sum") == 0 || strcmp(s->row->name, "prod") == 0
                               ? script_dims(s, 0, 4, 4)
                               : script_filled(s, 0, 4, 4);
    const struct words x = script_operand(s, dims, any);

    script_line(s, "output y = %s %s%s%s", s->row->name, x.text,
                script_axes(s, dims.rank, true).text, script_chance(s, 40) ? ", keep=true" : "");
}

/* Products with one, two and many zeros. */
static void with_zeros(struct script *s)
{
    const frit_dims dims = script_filled(s, 1, 3, 4);
    const struct words x = script_operand(s, dims, any);

    if (script_chance(s, 70))
        script_zeros(s);
    if (strcmp(s->row->name, "prod") == 0)
        script_line(s, "output y = prod %s%s%s", x.text, script_axes(s, dims.rank, true).text,
                    script_chance(s, 40) ? ", keep=true" : "");
    else
        script_line(s, "output y = %s %s, axis=%lld", s->row->name, x.text,
                    (long long)script_axis(s, dims.rank));
}

static void prod(struct script *s)
{
    if (script_chance(s, 50))
        reduce(s);
    else
        with_zeros(s);
}

static void along(struct script *s)
{
    const frit_dims dims = script_dims(s, 1, 4, 5);
    const struct words x = script_operand(s, dims, any);

    script_line(s, "output y = %s %s, axis=%lld", s->row->name, x.text,
                (long long)script_axis(s, dims.rank));
}

static void softmax(struct script *s)
{
    const frit_dims dims = script_dims(s, 1, 4, 5);
    const struct words x = script_operand(s, dims, any);

    script_line(s, "output y = %s %s, axis=%lld", s->row->name, x.text,
                (long long)script_axis(s, dims.rank));
}

static struct words or_none(struct script *s, frit_dims dims)
{
    return script_chance(s, 30) ? (struct words){"none"} : script_operand(s, dims, any);
}

/* For a norm over `n` elements; over few the default would make cliffs. */
static struct words some_eps(struct script *s, uint64_t n)
{
    return n > 3 && script_chance(s, 50) ? (struct words){""}
                                         : script_format(", eps=%.2f", script_real(s, 0.01, 0.3));
}

/* The dims of the axes, one or two last ones, or a single one. */
static void norm_axes(struct script *s)
{
    const frit_dims dims = script_dims(s, 2, 4, 4);
    const struct words x = script_operand(s, dims, any);
    const int64_t n = script_between(s, 1, 2), first = dims.rank - n;
    frit_dims few = {.rank = n};
    int64_t axes[2];
    struct words gamma, beta, at = {""};

    for (int64_t d = 0; d < n; d++) {
        axes[d] = first + d;
        few.dim[d] = dims.dim[first + d];
    }
    gamma = or_none(s, few);
    beta = strcmp(s->row->name, "layer_norm") == 0 ? or_none(s, few) : (struct words){""};
    if (n > 1 || script_chance(s, 50))
        at = script_format(", axes=%s", script_list(axes, n).text);
    script_line(s, "output y = %s %s, %s%s%s%s%s", s->row->name, x.text, gamma.text,
                *beta.text ? ", " : "", beta.text, at.text, some_eps(s, script_count(few)).text);
}

static void batch_norm(struct script *s)
{
    const frit_dims dims = script_filled(s, 2, 4, 4);
    const frit_dims channels = {.rank = 1, .dim = {dims.dim[1]}};
    const struct words x = script_operand(s, dims, any), gamma = script_operand(s, channels, any),
                       beta = script_operand(s, channels, any),
                       mean = script_operand(s, channels, any),
                       var = script_operand(s, channels, positive);

    script_line(s, "output y = batch_norm %s, %s, %s, %s, %s%s", x.text, gamma.text, beta.text,
                mean.text, var.text, some_eps(s, script_count(dims)).text);
}

static void group_norm(struct script *s)
{
    const int64_t groups = script_between(s, 1, 3), each = script_between(s, 1, 2);
    frit_dims dims = script_filled(s, 3, 4, 3);
    const frit_dims channels = {.rank = 1, .dim = {groups * each}};
    struct words x, gamma, beta;

    dims.dim[1] = groups * each;
    x = script_operand(s, dims, any);
    gamma = or_none(s, channels);
    beta = or_none(s, channels);
    script_line(s, "output y = group_norm %s, %s, %s, groups=%lld%s", x.text, gamma.text, beta.text,
                (long long)groups,
                some_eps(s, script_count(dims) / (uint64_t)(dims.dim[0] * groups)).text);
}

static void sort(struct script *s)
{
    const frit_dims dims = script_dims(s, 1, 3, 5);
    const struct words x = script_operand(s, dims, any);

    script_line(s, "output %s = sort %s, axis=%lld%s", script_chance(s, 50) ? "y" : "y, i", x.text,
                (long long)script_axis(s, dims.rank),
                script_chance(s, 50) ? ", descending=true" : "");
}

static void topk(struct script *s)
{
    const frit_dims dims = script_filled(s, 1, 3, 5);
    const struct words x = script_operand(s, dims, any);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);

    script_line(s, "output %s = topk %s, axis=%lld, k=%lld", script_chance(s, 50) ? "y" : "y, i",
                x.text, (long long)axis, (long long)script_between(s, 0, dims.dim[axis]));
}

/* A length that is the extent, smaller, larger, even or odd. */
static struct words some_length(struct script *s, int64_t extent)
{
    return script_chance(s, 40)
               ? (struct words){""}
               : script_format(", n=%lld", (long long)script_between(s, 1, extent + 4));
}

static void rfft(struct script *s)
{
    frit_dims dims = script_dims(s, 1, 3, 7);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);
    struct words x;

    dims.dim[axis] = dims.dim[axis] ? dims.dim[axis] : 1;
    x = script_operand(s, dims, any);
    script_line(s, "output re, im = rfft %s, axis=%lld%s", x.text,
                (long long)(script_chance(s, 20) ? axis - dims.rank : axis),
                some_length(s, dims.dim[axis]).text);
}

static void irfft(struct script *s)
{
    frit_dims dims = script_filled(s, 1, 3, 5);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);
    struct words re, im;

    dims.dim[axis] = dims.dim[axis] < 2 ? 2 : dims.dim[axis];
    re = script_operand(s, dims, any);
    im = script_operand(s, dims, any);
    script_line(s, "output y = irfft %s, %s, axis=%lld%s", re.text, im.text, (long long)axis,
                some_length(s, 2 * dims.dim[axis]).text);
}

const struct form forms_reduce[] = {{"sum", reduce},
                                    {"prod", prod},
                                    {"max", reduce},
                                    {"min", reduce},
                                    {"mean", reduce},
                                    {"max_abs", reduce},
                                    {"var", reduce},
                                    {"cumsum", along},
                                    {"cumprod", with_zeros},
                                    {"cummax", along},
                                    {"cummin", along},
                                    {"softmax", softmax},
                                    {"log_softmax", softmax},
                                    {"softmin", softmax},
                                    {"layer_norm", norm_axes},
                                    {"rms_norm", norm_axes},
                                    {"batch_norm", batch_norm},
                                    {"group_norm", group_norm},
                                    {"sort", sort},
                                    {"topk", topk},
                                    {"rfft", rfft},
                                    {"irfft", irfft},
                                    {0}};
