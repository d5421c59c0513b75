/* SPDX-License-Identifier: Apache-2.0 */
/* What a tensor holds once it is computed. */
#ifndef TENSOR_VALUE_H
#define TENSOR_VALUE_H

#include "graph/op.h"
#include "tensor/layout.h"

struct buffer;

struct value {
    struct buffer *buffer; /* owned; NULL: none yet */
    struct op_type type;
    struct layout layout;
};

#endif
