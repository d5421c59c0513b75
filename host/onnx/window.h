/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a convolution or a pool, from the attributes of its node. */
#ifndef ONNX_WINDOW_H
#define ONNX_WINDOW_H

#include "onnx/emit.h"

struct window {
    uint32_t rank; /* spatial dims */
    int64_t kernel[3], stride[3], dilation[3];
    int64_t low[3], high[3]; /* elements before and after; `high` with what ceil_mode adds */
    int64_t given_high[3];   /* without that */
    bool moved;              /* the operand was padded by an op of its own */
};

/* False after a problem.  The kernel is that of the weights `w`, or the attribute for NULL. */
bool window_read(struct import_node *n, const val *x, const val *w, struct window *out);
bool window_is_symmetric(const struct window *window);
/* Symmetric, and no more on a side than half of the kernel: what the table's pools take. */
bool window_is_simple(const struct window *window);
bool window_is_dilated(const struct window *window);
/* `value` before and after. */
val *window_pad(struct import_node *n, val *x, const struct window *window, val *value);
/* Conv by the attributes of the node; `bias` may be NULL. */
val *window_conv(struct import_node *n, val *x, val *w, val *bias);

#endif
