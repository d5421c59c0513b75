/* SPDX-License-Identifier: Apache-2.0 */
/* Where the elements of a tensor lie in its buffer, and what views do to that.  Pure. */
#ifndef TENSOR_LAYOUT_H
#define TENSOR_LAYOUT_H

#include <stdbool.h>

#include <frit/types.h>

struct op_type;

/* In elements of the tensor's type. */
struct layout {
    int64_t offset;                 /* of element 0,0,.. from the start of the buffer */
    int64_t strides[FRIT_MAX_RANK]; /* signed, 0 = broadcast */
};

/* Row-major without gaps from the start of the buffer. */
void layout_dense(const struct op_type *type, struct layout *out);
bool layout_is_dense(const struct op_type *type, const struct layout *layout);
/* The lowest and the highest element that is touched; both 0 for a tensor without elements. */
void layout_span(const struct op_type *type, const struct layout *layout, int64_t *low,
                 int64_t *high);

/* Copies the elements of that layout, whose first one is at `first`, densely to `out`.  Elements
 * have at least 8 bits. */
void layout_gather(const struct op_type *type, const struct layout *layout, const void *first,
                   void *out);

/* The layout of a core VIEW row's result over its operand's buffer.  `attrs` as op_check left them.
 * False if strides cannot say it (a reshape of something strided): then the operand wants a dense
 * copy. */
bool layout_view(uint32_t op, const void *attrs, const struct op_type *in,
                 const struct layout *from, const struct op_type *out, struct layout *to);

#endif
