/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the op table that this plugin runs, and the tensors they run on. */
#ifndef ROWS_H
#define ROWS_H

#include <frit/op.h>

#include "number.h"

enum { ROW_OPERANDS = 3 };

/* A tensor in host memory. */
struct tensor {
    char *data; /* element 0 */
    uint32_t dtype;
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK]; /* in bytes */
};

/* The records of the rows; only KEY fields are set. */
union row_attrs {
    uint32_t struct_size;
    frit_attrs_order order;
    frit_attrs_axes axes;
    frit_attrs_unfold unfold;
    frit_attrs_reduce reduce;
    frit_attrs_cast cast;
    frit_attrs_init init;
};

/* What a row is run with. */
struct row_call {
    struct tensor out;
    struct tensor in[ROW_OPERANDS];    /* data NULL: a scalar */
    union number scalar[ROW_OPERANDS]; /* by operand */
    uint32_t in_dtype[ROW_OPERANDS];   /* that operands are used as */
    const union row_attrs *attrs;
    const struct row *row;
};

typedef union number (*map_fn)(const union number *in, uint32_t dtype);

struct row {
    uint32_t op;   /* FRIT_OP_* */
    uint32_t cls;  /* FRIT_CLASS_* */
    uint32_t n_in; /* operands */
    uint32_t attrs_size;
    /* VIEW: the layout of out (whose dims are set) over `in`; false: strides cannot say it. */
    bool (*view)(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                 const int64_t *bounds);
    void (*run)(const struct row_call *call); /* others */
    uint32_t decides;                         /* MAP: operand in whose kind it computes */
    map_fn map[NUMBER_KINDS];
};

/* NULL for a row that this plugin does not run. */
const struct row *row_of(uint32_t op);

/* Copies elements as they are. */
void tensor_copy(const struct tensor *to, const struct tensor *from);
int64_t tensor_count(const struct tensor *tensor);
/* Dense row-major strides for the dims. */
void tensor_dense(struct tensor *tensor);

/* views.c: layouts of the VIEW rows. */
bool view_reshape(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                  const int64_t *bounds);
bool view_permute(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                  const int64_t *bounds);
bool view_expand(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                 const int64_t *bounds);
bool view_slice(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                const int64_t *bounds);
bool view_flip(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
               const int64_t *bounds);
bool view_unfold(struct tensor *out, const struct tensor *in, const union row_attrs *attrs,
                 const int64_t *bounds);

#endif
