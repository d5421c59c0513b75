/* SPDX-License-Identifier: Apache-2.0 */
#include "attrs.h"

#include "data.h"

frit_axes attrs_axes(const struct action *action)
{
    frit_axes axes = {.count = action->n_axes};

    for (uint32_t k = 0; k < action->n_axes; k++)
        axes.axis[k] = action->axes[k];
    return axes;
}

/* Takes `wanted` of `extent` elements, from a random place on. */
static frit_range part(int64_t extent, int64_t wanted, uint64_t chosen)
{
    int64_t step = wanted > 1 && (wanted - 1) * 2 < extent && chosen & 1 ? 2 : 1;
    int64_t span = (wanted - 1) * step + 1;
    int64_t start = (int64_t)(chosen / 2 % (uint64_t)(extent - span + 1));

    return (frit_range){start, start + span, step};
}

static frit_slices slices_of(const struct script *script, const struct play_params *params,
                             const struct action *action)
{
    const struct shape *from = &script->vars[action->in[0].var].shape;
    const struct shape *to = &script->vars[action->out[0]].shape;
    frit_slices slices = {.count = action->n_axes};

    for (uint32_t d = 0; d < action->n_axes; d++) {
        int64_t extent = dim_extent(from->code[d], params->variant);
        uint64_t chosen = data_variant_seed(action->seed + d, params);

        switch ((enum slice_form)action->axes[d]) {
        case SLICE_WHOLE:
            break;
        case SLICE_BACK:
            slices.dim[d] = (frit_range){-1, FRIT_SLICE_END, -1};
            break;
        case SLICE_ONE:
            slices.dim[d] = part(extent, 1, chosen);
            break;
        case SLICE_NONE:
            slices.dim[d] = (frit_range){extent / 2, extent / 2, 1};
            break;
        case SLICE_PART:
            slices.dim[d] = part(extent, dim_extent(to->code[d], params->variant), chosen);
            break;
        }
    }
    return slices;
}

/* One scale for all, or one for each line along the last dim. */
static frit_dims block_of(const struct script *script, const struct play_params *params,
                          const struct action *action)
{
    frit_dims block = {.rank = action->keep ? script->vars[action->out[0]].shape.rank : 0};

    for (int64_t d = 0; d < block.rank; d++)
        block.dim[d] = d + 1 == block.rank ? dim_extent(action->size, params->variant) : 1;
    return block;
}

bool attrs_random(uint16_t op)
{
    return op == FRIT_OP_random_uniform || op == FRIT_OP_random_bernoulli;
}

#define SIZED(record, ...)                                \
    attrs->record = (frit_attrs_##record)                 \
    {                                                     \
        .struct_size = sizeof(attrs->record), __VA_ARGS__ \
    }

const void *attrs_of(const struct script *script, const struct play_params *params,
                     const struct action *action, union attrs *attrs)
{
    const struct var *out = &script->vars[action->out[0]];
    frit_dims dims = shape_dims(&out->shape, params->variant);

    switch ((enum attr_form)action->attrs) {
    case ATTR_NONE:
        return NULL;
    case ATTR_DIMS:
        SIZED(dims, .dims = dims);
        break;
    case ATTR_INIT:
        SIZED(init,
              .dtype = attrs_random(action->op) ? out->dtype
                                                : data_dtype(script, params, action->out[0]),
              .dims = dims);
        break;
    case ATTR_ORDER:
        SIZED(order, .order = attrs_axes(action));
        break;
    case ATTR_SLICE:
        SIZED(slice, .slices = slices_of(script, params, action));
        break;
    case ATTR_AXES:
        SIZED(axes, .axes = attrs_axes(action));
        break;
    case ATTR_UNFOLD:
        SIZED(unfold, .axis = action->axis, .size = dim_extent(action->size, params->variant),
              .step = action->step);
        break;
    case ATTR_CAST:
        SIZED(cast, .dtype = data_dtype(script, params, action->out[0]));
        break;
    case ATTR_REDUCE:
        SIZED(reduce, .axes = attrs_axes(action), .keep = action->keep);
        break;
    case ATTR_AXIS:
        SIZED(axis, .axis = action->axis);
        break;
    case ATTR_SWAP:
        SIZED(swap, .axis = action->axis, .with = action->other_axis);
        break;
    case ATTR_NORM_AXES:
        SIZED(norm_axes, .axes = attrs_axes(action));
        break;
    case ATTR_POOL:
        SIZED(max_pool, .kernel = {action->step}, .stride = {1});
        break;
    case ATTR_SORT:
        SIZED(sort, .axis = action->axis, .descending = action->choice);
        break;
    case ATTR_TOPK:
        SIZED(topk, .axis = action->axis, .k = dim_extent(action->size, params->variant));
        break;
    case ATTR_SCATTER:
        SIZED(scatter, .axis = action->axis, .update = action->choice);
        break;
    case ATTR_FFT:
        SIZED(fft, .axis = action->axis, .n = dim_extent(action->size, params->variant));
        break;
    case ATTR_QUANTIZE:
        SIZED(quantize, .dtype = out->dtype, .block = block_of(script, params, action),
              .symmetric = action->choice);
        break;
    case ATTR_DEQUANTIZE:
        SIZED(dequantize, .block = block_of(script, params, action));
        break;
    case ATTR_CONV:
        SIZED(conv, .groups = dim_extent(action->size, params->variant));
        break;
    case ATTR_ATTENTION:
        SIZED(attention, .causal = action->choice);
        break;
    }
    return attrs;
}
