/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/layout.h"

#include <string.h>

#include "graph/op.h"

void layout_dense(const struct op_type *type, struct layout *out)
{
    int64_t stride = 1;

    *out = (struct layout){0};
    for (uint32_t i = type->rank; i-- > 0;) {
        out->strides[i] = stride;
        stride *= type->dims[i] > 0 ? type->dims[i] : 1;
    }
}

bool layout_is_dense(const struct op_type *type, const struct layout *layout)
{
    int64_t stride = 1;

    if (op_elements(type) == 0)
        return true;
    for (uint32_t i = type->rank; i-- > 0;) {
        if (type->dims[i] != 1 && layout->strides[i] != stride)
            return false;
        stride *= type->dims[i];
    }
    return true;
}

void layout_span(const struct op_type *type, const struct layout *layout, int64_t *low,
                 int64_t *high)
{
    *low = *high = layout->offset;
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t reach = (type->dims[i] - 1) * layout->strides[i];

        if (type->dims[i] == 0) {
            *low = *high = 0;
            return;
        }
        *(reach < 0 ? low : high) += reach;
    }
}

/* Dims from `axis` on; returns the end of what it wrote. */
static char *gather(const struct op_type *type, const struct layout *layout, uint32_t axis,
                    const char *from, char *to)
{
    const size_t size = (size_t)frit_storage_bytes(type->dtype, 1);

    if (axis == type->rank) {
        memcpy(to, from, size);
        return to + size;
    }
    if (axis + 1 == type->rank && layout->strides[axis] == 1) {
        memcpy(to, from, size * (size_t)type->dims[axis]);
        return to + size * (size_t)type->dims[axis];
    }
    for (int64_t i = 0; i < type->dims[axis]; i++)
        to = gather(type, layout, axis + 1, from + i * layout->strides[axis] * (int64_t)size, to);
    return to;
}

void layout_gather(const struct op_type *type, const struct layout *layout, const void *first,
                   void *out)
{
    gather(type, layout, 0, first, out);
}

/* One view row: fills `to`, whose strides are zero, from `from`. */
typedef bool (*view_fn)(const void *attrs, const struct op_type *in, const struct layout *from,
                        const struct op_type *out, struct layout *to);

/* Splits both shapes into the shortest groups of dims with equal products; inside a group the
 * operand's dims must follow each other without gaps, then the result's strides are row-major over
 * the innermost. */
static bool view_reshape(const void *attrs, const struct op_type *in, const struct layout *from,
                         const struct op_type *out, struct layout *to)
{
    struct op_type packed = {0};
    int64_t strides[FRIT_MAX_RANK] = {0};
    uint32_t i = 0, j = 0;

    (void)attrs;
    if (op_elements(in) == 0) {
        layout_dense(out, to);
        to->offset = from->offset;
        return true;
    }
    for (uint32_t k = 0; k < in->rank; k++) {
        if (in->dims[k] != 1) {
            packed.dims[packed.rank] = in->dims[k];
            strides[packed.rank++] = from->strides[k];
        }
    }
    while (i < packed.rank) {
        int64_t have = packed.dims[i], want = 1;
        uint32_t first = j, last = i;

        while (j < out->rank && want < have)
            want *= out->dims[j++];
        while (want != have) {
            if (have < want) {
                if (strides[last] != strides[last + 1] * packed.dims[last + 1])
                    return false;
                have *= packed.dims[++last];
            } else {
                want *= out->dims[j++];
            }
        }
        want = strides[last];
        for (uint32_t k = j; k-- > first;) {
            to->strides[k] = want;
            want *= out->dims[k];
        }
        i = last + 1;
    }
    return true;
}

static bool view_permute(const void *attrs, const struct op_type *in, const struct layout *from,
                         const struct op_type *out, struct layout *to)
{
    const frit_attrs_order *a = attrs;

    (void)in;
    for (uint32_t i = 0; i < out->rank; i++)
        to->strides[i] = from->strides[a->order.axis[i]];
    return true;
}

static bool view_expand(const void *attrs, const struct op_type *in, const struct layout *from,
                        const struct op_type *out, struct layout *to)
{
    uint32_t extra = out->rank - in->rank;

    (void)attrs;
    for (uint32_t i = 0; i < in->rank; i++)
        to->strides[extra + i] = in->dims[i] == out->dims[extra + i] ? from->strides[i] : 0;
    return true;
}

static bool view_slice(const void *attrs, const struct op_type *in, const struct layout *from,
                       const struct op_type *out, struct layout *to)
{
    const frit_attrs_slice *a = attrs;

    for (uint32_t i = 0; i < in->rank; i++) {
        const frit_range *range = &a->slices.dim[i];

        if (out->dims[i] > 0)
            to->offset += range->start * from->strides[i];
        to->strides[i] = from->strides[i] * range->step;
    }
    return true;
}

static bool view_flip(const void *attrs, const struct op_type *in, const struct layout *from,
                      const struct op_type *out, struct layout *to)
{
    const frit_attrs_axes *a = attrs;

    (void)out;
    for (uint32_t i = 0; i < in->rank; i++)
        to->strides[i] = from->strides[i];
    for (int64_t k = 0; k < a->axes.count; k++) {
        int64_t axis = a->axes.axis[k];

        if (in->dims[axis] > 0)
            to->offset += (in->dims[axis] - 1) * from->strides[axis];
        to->strides[axis] = -from->strides[axis];
    }
    return true;
}

static bool view_unfold(const void *attrs, const struct op_type *in, const struct layout *from,
                        const struct op_type *out, struct layout *to)
{
    const frit_attrs_unfold *a = attrs;

    (void)out;
    for (uint32_t i = 0; i < in->rank; i++)
        to->strides[i] = from->strides[i];
    to->strides[a->axis] *= a->step;
    to->strides[in->rank] = from->strides[a->axis];
    return true;
}

/* Packed values are dense: a product takes them as they lie in memory. */
static bool view_bitcast(const void *attrs, const struct op_type *in, const struct layout *from,
                         const struct op_type *out, struct layout *to)
{
    (void)attrs;
    memcpy(to->strides, from->strides, sizeof(to->strides));
    return frit_dtype_info_of(out->dtype).cls != FRIT_DTYPE_PACKED || layout_is_dense(in, from);
}

/* Every core row of class VIEW. */
static const struct {
    uint32_t op;
    view_fn fn;
} views[] = {
    {FRIT_OP_reshape, view_reshape}, {FRIT_OP_permute, view_permute}, {FRIT_OP_expand, view_expand},
    {FRIT_OP_slice, view_slice},     {FRIT_OP_flip, view_flip},       {FRIT_OP_unfold, view_unfold},
    {FRIT_OP_bitcast, view_bitcast},
};

bool layout_view(uint32_t op, const void *attrs, const struct op_type *in,
                 const struct layout *from, const struct op_type *out, struct layout *to)
{
    *to = (struct layout){.offset = from->offset};
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        if (views[i].op == op)
            return views[i].fn(attrs, in, from, out, to);
    }
    return false;
}
