/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of the views: the same elements under other dims and strides.  Attributes are in
 * the form that drivers get: defaults are filled in, axes count from the front, slices are resolved
 * to bounds. */
#include <string.h>

#include "rows.h"

/* Walks both lists of dims and matches groups of equal products; within a group the strides of the
 * operand must be those of one run of elements. */
bool view_reshape(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                  const int64_t *bounds)
{
    int64_t dims[FRIT_MAX_RANK], strides[FRIT_MAX_RANK];
    uint32_t rank = 0, i = 0, o = 0;

    (void)attrs;
    (void)bounds;
    out->data = in->data;
    if (tensor_count(in) == 0) {
        tensor_dense(out);
        return true;
    }
    for (uint32_t d = 0; d < in->rank; d++) {
        if (in->dims[d] == 1)
            continue;
        dims[rank] = in->dims[d];
        strides[rank++] = in->strides[d];
    }
    while (i < rank) {
        int64_t have = dims[i], want = 1, step;
        uint32_t last = i, end = o;

        while (want != have) {
            if (want < have) {
                want *= out->dims[end++];
                continue;
            }
            if (strides[last] != dims[last + 1] * strides[last + 1])
                return false;
            have *= dims[++last];
        }
        step = strides[last];
        for (uint32_t d = end; d-- > o;) {
            out->strides[d] = step;
            step *= out->dims[d];
        }
        i = last + 1;
        o = end;
    }
    for (; o < out->rank; o++) /* extents of 1 are left */
        out->strides[o] = 0;
    return true;
}

bool view_permute(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                  const int64_t *bounds)
{
    (void)bounds;
    out->data = in->data;
    for (uint32_t d = 0; d < out->rank; d++)
        out->strides[d] = in->strides[attrs->order.order.axis[d]];
    return true;
}

bool view_expand(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                 const int64_t *bounds)
{
    uint32_t extra = out->rank - in->rank;

    (void)attrs;
    (void)bounds;
    out->data = in->data;
    memset(out->strides, 0, sizeof(out->strides));
    for (uint32_t d = extra; d < out->rank; d++)
        if (in->dims[d - extra] == out->dims[d])
            out->strides[d] = in->strides[d - extra];
    return true;
}

bool view_slice(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                const int64_t *bounds)
{
    (void)attrs;
    out->data = in->data;
    for (uint32_t d = 0; d < out->rank; d++) {
        out->data += bounds[3 * (size_t)d] * in->strides[d];
        out->strides[d] = bounds[3 * (size_t)d + 2] * in->strides[d];
    }
    return true;
}

bool view_flip(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
               const int64_t *bounds)
{
    (void)bounds;
    out->data = in->data;
    memcpy(out->strides, in->strides, sizeof(out->strides));
    for (int64_t k = 0; k < attrs->axes.axes.count; k++) {
        int64_t d = attrs->axes.axes.axis[k];

        if (in->dims[d] > 0)
            out->data += (in->dims[d] - 1) * in->strides[d];
        out->strides[d] = -in->strides[d];
    }
    return true;
}

bool view_unfold(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                 const int64_t *bounds)
{
    int64_t axis = attrs->unfold.axis;

    (void)bounds;
    out->data = in->data;
    memcpy(out->strides, in->strides, sizeof(out->strides));
    out->strides[axis] = attrs->unfold.step * in->strides[axis];
    out->strides[in->rank] = in->strides[axis];
    return true;
}
