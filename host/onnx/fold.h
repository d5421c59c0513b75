/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on known elements, computed while a model is translated: what shapes are made of.
 *
 * Only rows of the tables of fold.c and fold_math.c, on small tensors, one element at a time.  What
 * they give is what the op table says. */
#ifndef ONNX_FOLD_H
#define ONNX_FOLD_H

#include "graph/op.h"

enum { FOLD_MAX_ELEMENTS = 1 << 14, FOLD_MAX_BYTES = 8 * FOLD_MAX_ELEMENTS + 1 };

struct fold_input {
    struct op_type type; /* of a scalar: rank 0 */
    const void *data;    /* NULL: a scalar */
    frit_scalar scalar;
};

struct fold {
    uint32_t op;
    uint32_t n_in;
    const struct fold_input *in;
    const void *attrs; /* checked */
    struct op_type out;
    void *result;
};

/* A number of any element type: integers exact, floats in `real`. */
struct fold_number {
    int64_t whole;
    double real;
};

/* Whether an op is computed here. */
bool fold_knows(uint32_t op);
void fold_run(const struct fold *fold);

/* Element `index` of dense elements, both forms set; writing takes the form of the type. */
struct fold_number fold_get(uint32_t dtype, const void *data, int64_t index);
void fold_put(uint32_t dtype, void *data, int64_t index, struct fold_number number);
/* Whether elements of this type can be read: not packed ones. */
bool fold_reads(uint32_t dtype);

/* A real as a whole number, the nearest end of the range where it is beyond; 0 for NaN. */
int64_t fold_whole(double value);

/* fold_math.c: elementwise ops. */
typedef struct fold_number fold_map(const struct fold_number *in, bool real, uint32_t dtype);
fold_map *fold_math(uint32_t op);

#endif
