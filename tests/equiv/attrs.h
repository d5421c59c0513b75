/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a script's ops in a play. */
#ifndef EQUIV_ATTRS_H
#define EQUIV_ATTRS_H

#include "play.h"

union attrs {
    uint32_t struct_size;
    frit_attrs_dims dims;
    frit_attrs_init init;
    frit_attrs_order order;
    frit_attrs_slice slice;
    frit_attrs_axes axes;
    frit_attrs_unfold unfold;
    frit_attrs_cast cast;
    frit_attrs_reduce reduce;
    frit_attrs_axis axis;
    frit_attrs_swap swap;
    frit_attrs_norm_axes norm_axes;
    frit_attrs_max_pool max_pool;
    frit_attrs_sort sort;
    frit_attrs_topk topk;
    frit_attrs_scatter scatter;
    frit_attrs_fft fft;
    frit_attrs_quantize quantize;
    frit_attrs_dequantize dequantize;
    frit_attrs_conv conv;
    frit_attrs_attention attention;
};

/* Fills `attrs` and returns it; NULL where the action has no attributes. */
const void *attrs_of(const struct script *script, const struct play_params *params,
                     const struct action *action, union attrs *attrs);
frit_axes attrs_axes(const struct action *action);
/* Rows whose type is drawn in, whatever the play computes in. */
bool attrs_random(uint16_t op);

#endif
