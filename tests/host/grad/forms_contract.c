/* SPDX-License-Identifier: Apache-2.0 */
/* Products, convolutions and attention. */
#include <stdio.h>
#include <string.h>

#include "host/grad/forms.h"

static const struct domain small = {-1, 1};

/* Leading dims broadcast; one operand may have fewer of them. */
static void matmul(struct script *s)
{
    const frit_dims lead = script_filled(s, 0, 2, 3);
    const int64_t m = script_between(s, 1, 4), k = script_between(s, 0, 4);
    const int64_t n = script_between(s, 1, 4);
    frit_dims dims[2] = {lead, lead};
    struct words a, b;

    for (int i = 0; i < 2; i++) {
        if (script_chance(s, 30))
            dims[i] = (frit_dims){0};
        for (int64_t d = 0; d < dims[i].rank; d++) {
            if (script_chance(s, 30))
                dims[i].dim[d] = 1;
        }
        dims[i].dim[dims[i].rank++] = i ? k : m;
        dims[i].dim[dims[i].rank++] = i ? n : k;
    }
    a = script_operand(s, dims[0], any);
    b = script_operand(s, dims[1], any);
    if (m == k && k == n && dims[0].rank == dims[1].rank && script_chance(s, 30))
        b = a;
    script_line(s, "output y = matmul %s, %s", a.text, b.text);
}

static void linear(struct script *s)
{
    frit_dims x = script_dims(s, 1, 4, 3), w = {.rank = 2}, bias = {.rank = 1};
    struct words xs, ws;

    x.dim[x.rank - 1] = w.dim[0] = script_between(s, 1, 4);
    w.dim[1] = bias.dim[0] = script_between(s, 1, 4);
    xs = script_operand(s, x, any);
    ws = script_operand(s, w, any);
    if (script_chance(s, 50))
        script_line(s, "output y = linear %s, %s", xs.text, ws.text);
    else
        script_line(s, "output y = linear %s, %s, %s", xs.text, ws.text,
                    script_operand(s, bias, any).text);
}

/* Attributes of a convolution in `n` spatial dims. */
struct conv {
    int64_t n, groups, stride[3], padding[3], dilation[3], kernel[3], extent[3];
};

static struct conv some_conv(struct script *s, int64_t n)
{
    struct conv c = {.n = n, .groups = script_chance(s, 70) ? 1 : 2};

    for (int64_t d = 0; d < c.n; d++) {
        c.stride[d] = script_between(s, 1, 3);
        c.padding[d] = script_between(s, 0, 2);
        c.dilation[d] = script_between(s, 1, 2);
        c.kernel[d] = script_between(s, 1, 3);
        c.extent[d] = (c.kernel[d] - 1) * c.dilation[d] + 1 + script_between(s, 0, 3);
    }
    return c;
}

static struct words conv_attrs(const struct conv *c)
{
    return script_format(", stride=%s, padding=%s, dilation=%s", script_list(c->stride, c->n).text,
                         script_list(c->padding, c->n).text, script_list(c->dilation, c->n).text);
}

static frit_dims with_spatial(int64_t first, int64_t second, const int64_t *spatial, int64_t n)
{
    frit_dims dims = {.rank = 2 + n, .dim = {first, second}};

    memcpy(dims.dim + 2, spatial, (size_t)n * sizeof(*spatial));
    return dims;
}

static void conv(struct script *s)
{
    const struct conv c = some_conv(s, script_between(s, 1, 3));
    const int64_t ic = script_between(s, 1, 2), oc = script_between(s, 1, 2);
    const struct words x =
        script_operand(s, with_spatial(script_batch(s), ic * c.groups, c.extent, c.n), small);
    const struct words w = script_operand(s, with_spatial(oc * c.groups, ic, c.kernel, c.n), small);
    struct words bias = {""};

    if (script_chance(s, 50))
        bias = script_format(", %s", script_operand(s, FRIT_SHAPE(oc * c.groups), small).text);
    script_line(s, "output y = conv %s, %s%s%s, groups=%lld", x.text, w.text, bias.text,
                conv_attrs(&c).text, (long long)c.groups);
}

static void conv_transpose(struct script *s)
{
    struct conv c = some_conv(s, script_between(s, 1, 3));
    const int64_t ic = script_between(s, 1, 2), oc = script_between(s, 1, 2);
    int64_t out[3];
    struct words x, w, bias = {""};

    for (int64_t d = 0; d < c.n; d++) {
        const int64_t most = c.stride[d] > c.dilation[d] ? c.stride[d] : c.dilation[d];

        c.extent[d] = script_between(s, 1, 4);
        out[d] = script_between(s, 0, most - 1);
        while ((c.extent[d] - 1) * c.stride[d] + (c.kernel[d] - 1) * c.dilation[d] + 1 + out[d] <=
               2 * c.padding[d])
            c.padding[d]--;
    }
    x = script_operand(s, with_spatial(script_batch(s), ic * c.groups, c.extent, c.n), small);
    w = script_operand(s, with_spatial(ic * c.groups, oc, c.kernel, c.n), small);
    if (script_chance(s, 50))
        bias = script_format(", %s", script_operand(s, FRIT_SHAPE(oc * c.groups), small).text);
    script_line(s, "output y = conv_transpose %s, %s%s%s, padding_out=%s, groups=%lld", x.text,
                w.text, bias.text, conv_attrs(&c).text, script_list(out, c.n).text,
                (long long)c.groups);
}

static void deform_conv(struct script *s)
{
    const struct conv c = some_conv(s, 2);
    const int64_t ic = 2, oc = 2, n = script_batch(s), parts = script_between(s, 1, 2);
    int64_t out[2], k = c.kernel[0] * c.kernel[1];
    struct words x, offset, w, mask = {"none"}, bias = {"none"};

    for (int d = 0; d < 2; d++)
        out[d] =
            (c.extent[d] + 2 * c.padding[d] - (c.kernel[d] - 1) * c.dilation[d] - 1) / c.stride[d] +
            1;
    x = script_operand(s, with_spatial(n, ic * c.groups, c.extent, 2), small);
    offset = script_operand(s, with_spatial(n, 2 * k * parts, out, 2), small);
    w = script_operand(s, with_spatial(oc * c.groups, ic, c.kernel, 2), small);
    if (script_chance(s, 50))
        mask = script_operand(s, with_spatial(n, k * parts, out, 2), small);
    if (script_chance(s, 50))
        bias = script_operand(s, FRIT_SHAPE(oc * c.groups), small);
    script_line(s, "output y = deform_conv %s, %s, %s, %s, %s%s, groups=%lld, offset_groups=%lld",
                x.text, offset.text, w.text, mask.text, bias.text, conv_attrs(&c).text,
                (long long)c.groups, (long long)parts);
}

/* Grouped queries, masks that hide whole rows, and biases that broadcast. */
static void attention(struct script *s)
{
    const int64_t n = script_batch(s), shared = script_between(s, 1, 2);
    const int64_t heads = script_between(s, 1, 2), size = script_between(s, 1, 4);
    const int64_t queries = script_between(s, 1, 4), keys = script_between(s, 1, 4);
    const struct words q = script_operand(s, FRIT_SHAPE(n, heads * shared, queries, size), any);
    const bool same = shared == 1 && keys == queries && script_chance(s, 50);
    const struct words k = same ? q : script_operand(s, FRIT_SHAPE(n, heads, keys, size), any);
    const struct words v =
        same && script_chance(s, 50)
            ? q
            : script_operand(s, FRIT_SHAPE(n, heads, keys, script_between(s, 1, 4)), any);
    struct words mask = {"none"}, bias = {"none"}, attrs = {""};

    if (script_chance(s, 40))
        mask = script_mask(s, script_chance(s, 50) ? FRIT_SHAPE(queries, keys)
                                                   : FRIT_SHAPE(n, 1, queries, keys));
    if (script_chance(s, 40))
        bias = script_operand(s,
                              script_chance(s, 50) ? FRIT_SHAPE(heads * shared, 1, keys)
                                                   : FRIT_SHAPE(n, heads * shared, queries, keys),
                              any);
    if (script_chance(s, 40))
        attrs = script_format(", scale=%.2f", script_real(s, 0.2, 1.5));
    if (script_chance(s, 40))
        attrs = script_format("%s, softcap=%.1f", attrs.text, script_real(s, 0.5, 4));
    if (script_chance(s, 40))
        attrs = script_format("%s, causal=true", attrs.text);
    script_line(s, "output y = attention %s, %s, %s, %s, %s%s", q.text, k.text, v.text, mask.text,
                bias.text, attrs.text);
}

static void cross(struct script *s)
{
    frit_dims dims = script_filled(s, 1, 3, 3);
    const int64_t axis = (int64_t)script_draw(s, (uint64_t)dims.rank);
    struct words a, b;

    dims.dim[axis] = 3;
    a = script_operand(s, dims, any);
    b = script_chance(s, 15) ? a : script_operand(s, dims, any);
    script_line(s, "output y = cross %s, %s, axis=%lld", a.text, b.text, (long long)axis);
}

/* The op's gradient is that of log_softmax and the loss together. */
static void ctc_loss(struct script *s)
{
    const int64_t n = script_between(s, 1, 3), classes = script_between(s, 2, 4);
    const int64_t most = script_between(s, 1, 3), t = 2 * most + script_between(s, 0, 2);
    const int64_t blank = script_chance(s, 50) ? 0 : classes - 1;
    const uint32_t dtype = script_chance(s, 50) ? FRIT_I64 : FRIT_I32;
    const struct words x = script_operand(s, FRIT_SHAPE(t, n, classes), any);
    const struct words targets =
        script_integers(s, dtype, FRIT_SHAPE(n, most), blank == 0, classes - 1 - (blank > 0));
    const struct words of_inputs = script_integers(s, dtype, FRIT_SHAPE(n), 2 * most, t);
    const struct words of_targets = script_integers(s, dtype, FRIT_SHAPE(n), 0, most);

    script_line(s, "u = log_softmax %s, axis=2", x.text);
    script_line(s, "output y = ctc_loss u, %s, %s, %s, blank=%lld", targets.text, of_inputs.text,
                of_targets.text, (long long)blank);
}

const struct form forms_contract[] = {{"matmul", matmul},
                                      {"linear", linear},
                                      {"conv", conv},
                                      {"conv_transpose", conv_transpose},
                                      {"deform_conv", deform_conv},
                                      {"attention", attention},
                                      {"cross", cross},
                                      {"ctc_loss", ctc_loss},
                                      {0}};
