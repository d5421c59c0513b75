/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/window.h"

#include <string.h>

#include "onnx/problem.h"

enum { MAX_SPATIAL = 3 };

static bool read_kernel(struct import_node *n, const val *w, struct window *out)
{
    if (!w) {
        if (!attr_has(n, "kernel_shape"))
            problem_node(n, "there is no kernel_shape");
        attr_numbers(n, "kernel_shape", out->rank, 1, 1, out->kernel);
        return !n->failed;
    }
    if (w->type.rank != out->rank + 2) {
        problem_node(n, "weights with %u dims for an operand with %u", w->type.rank, out->rank + 2);
        return false;
    }
    memcpy(out->kernel, w->type.dims + 2, out->rank * sizeof(int64_t));
    return true;
}

/* Extent of a dilated kernel. */
static int64_t reach(const struct window *w, uint32_t i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

static void same_pads(const val *x, struct window *w, bool upper)
{
    for (uint32_t i = 0; i < w->rank; i++) {
        int64_t in = x->type.dims[2 + i], out = (in + w->stride[i] - 1) / w->stride[i];
        int64_t total = (out - 1) * w->stride[i] + reach(w, i) - in;

        total = total < 0 ? 0 : total;
        w->low[i] = upper ? total / 2 : total - total / 2;
        w->high[i] = total - w->low[i];
    }
}

static void read_pads(struct import_node *n, const val *x, struct window *w)
{
    const char *automatic = attr_text(n, "auto_pad", "NOTSET");
    struct ints pads;

    if (strcmp(automatic, "SAME_UPPER") == 0 || strcmp(automatic, "SAME_LOWER") == 0) {
        same_pads(x, w, strcmp(automatic, "SAME_UPPER") == 0);
    } else if (strcmp(automatic, "NOTSET") == 0 || !automatic[0]) {
        if (!attr_ints(n, "pads", &pads))
            return;
        if (pads.count != 2 * w->rank) {
            problem_node(n, "pads has %u numbers for %u spatial dims", pads.count, w->rank);
            return;
        }
        for (uint32_t i = 0; i < pads.count; i++) {
            if (pads.at[i] < -INT32_MAX || pads.at[i] > INT32_MAX) {
                problem_node(n, "pads are %lld", (long long)pads.at[i]);
                return;
            }
        }
        memcpy(w->low, pads.at, w->rank * sizeof(int64_t));
        memcpy(w->high, pads.at + w->rank, w->rank * sizeof(int64_t));
    } else if (strcmp(automatic, "VALID") != 0) {
        problem_node(n, "auto_pad %.40s", automatic);
    }
}

/* With ceil_mode a last window may reach beyond the pads, if it begins before their end. */
static void add_ceil(const val *x, struct window *w)
{
    for (uint32_t i = 0; i < w->rank; i++) {
        int64_t in = x->type.dims[2 + i];
        int64_t room = in + w->low[i] + w->high[i] - reach(w, i);
        int64_t out = room < 0 ? 0 : (room + w->stride[i] - 1) / w->stride[i] + 1;

        if (out > 0 && (out - 1) * w->stride[i] >= in + w->low[i])
            out--;
        room = out > 0 ? (out - 1) * w->stride[i] + reach(w, i) - in - w->low[i] : 0;
        if (room > w->high[i])
            w->high[i] = room;
    }
}

bool window_read(struct import_node *n, const val *x, const val *w, struct window *out)
{
    *out = (struct window){0};
    if (!x || n->failed)
        return false;
    if (x->type.rank < 3 || x->type.rank - 2 > MAX_SPATIAL) {
        problem_node(n, "an operand with %u dims; 1 to %d spatial dims are possible", x->type.rank,
                     MAX_SPATIAL);
        return false;
    }
    out->rank = x->type.rank - 2;
    if (!read_kernel(n, w, out))
        return false;
    attr_numbers(n, "strides", out->rank, 1, 1, out->stride);
    attr_numbers(n, "dilations", out->rank, 1, 1, out->dilation);
    read_pads(n, x, out);
    memcpy(out->given_high, out->high, sizeof(out->high));
    if (!n->failed && attr_int(n, "ceil_mode", 0))
        add_ceil(x, out);
    return !n->failed;
}

bool window_is_symmetric(const struct window *w)
{
    for (uint32_t i = 0; i < w->rank; i++) {
        if (w->low[i] != w->high[i] || w->low[i] < 0)
            return false;
    }
    return true;
}

bool window_is_simple(const struct window *w)
{
    for (uint32_t i = 0; i < w->rank; i++) {
        if (w->low[i] > w->kernel[i] / 2)
            return false;
    }
    return window_is_symmetric(w);
}

bool window_is_dilated(const struct window *w)
{
    for (uint32_t i = 0; i < w->rank; i++) {
        if (w->dilation[i] != 1)
            return true;
    }
    return false;
}

val *window_pad(struct import_node *n, val *x, const struct window *w, val *value)
{
    int64_t low[FRIT_MAX_RANK] = {0}, high[FRIT_MAX_RANK] = {0};

    memcpy(low + 2, w->low, w->rank * sizeof(int64_t));
    memcpy(high + 2, w->high, w->rank * sizeof(int64_t));
    return e_pad(n, x, value, low, high);
}

val *window_conv(struct import_node *n, val *x, val *w, val *bias)
{
    frit_attrs_conv attrs = E_ATTRS(conv);
    struct window window;

    if (!window_read(n, x, w, &window))
        return NULL;
    if (window_is_symmetric(&window))
        memcpy(attrs.padding, window.low, sizeof(window.low));
    else
        x = window_pad(n, x, &window, e_whole(n, 0));
    memcpy(attrs.stride, window.stride, sizeof(window.stride));
    memcpy(attrs.dilation, window.dilation, sizeof(window.dilation));
    attrs.groups = attr_int(n, "group", 1);
    return E_OP(n, FRIT_OP_conv, &attrs, x, w, bias ? bias : e_none(n));
}
