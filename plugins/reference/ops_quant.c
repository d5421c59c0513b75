/* SPDX-License-Identifier: Apache-2.0 */
/* quantize and dequantize.  Packed tensors are dense, so that an element's number says where it
 * lies and, taken apart into indices, to which block it belongs. */
#include "packed.h"
#include "rows.h"

struct quant {
    struct view scales;
    frit_dims block; /* of rank 0: one scale for all */
    int64_t scale_type;
    double global;
};

/* `type` says to what the global scale is rounded, and whether there is one. */
static void quant_init(struct quant *q, const struct call *call, int64_t type)
{
    const struct view global = call_in(call, 2);

    q->scales = call_in(call, 1);
    q->global = 1;
    if (global.data)
        q->global = packed_scale(type, value_get(global.dtype, global.data).real);
}

/* Where element `i` of a dense tensor of the view's dims lies in the view, every dim being made
 * smaller by its block. */
static int64_t place_of(const struct view *view, const struct view *dense, const int64_t *block,
                        int64_t i)
{
    int64_t at = 0;

    for (uint32_t d = dense->rank; d-- > 0; i /= dense->dims[d])
        at += i % dense->dims[d] / (block ? block[d] : 1) * view->strides[d];
    return at;
}

/* Of element `i` of the tensor of these dims. */
static double scale_at(const struct quant *q, const struct view *dense, int64_t i)
{
    int64_t at = q->block.rank ? place_of(&q->scales, dense, q->block.dim, i) : 0;

    return q->global *
           packed_scale(q->scale_type, value_get(q->scales.dtype, q->scales.data + at).real);
}

static int64_t count_of(const struct view *view)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < view->rank; d++)
        count *= view->dims[d];
    return count;
}

void ref_quantize(const struct call *call)
{
    const frit_attrs_quantize *attrs = call_attrs(call);
    const struct view x = call_in(call, 0), y = call_out(call, 0);
    struct quant q = {.block = attrs->block, .scale_type = attrs->scale};

    quant_init(&q, call, attrs->global);
    for (int64_t i = 0; i < count_of(&y); i++) {
        double real = value_get(x.dtype, x.data + place_of(&x, &y, NULL, i)).real;

        packed_put(y.dtype, y.data, i,
                   packed_encode(y.dtype, attrs->symmetric != 0, real / scale_at(&q, &y, i)));
    }
}

void ref_dequantize(const struct call *call)
{
    const frit_attrs_dequantize *attrs = call_attrs(call);
    const struct view x = call_in(call, 0), y = call_out(call, 0);
    struct quant q = {.block = attrs->block, .scale_type = attrs->scale};

    quant_init(&q, call, attrs->global);
    for (int64_t i = 0; i < count_of(&x); i++)
        value_put(y.dtype, y.data + place_of(&y, &x, NULL, i),
                  (union value){.real = packed_decode(x.dtype, packed_get(x.dtype, x.data, i)) *
                                        scale_at(&q, &x, i)});
}
