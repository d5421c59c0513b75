/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: Frit's generator, so that the distribution is ONNX's and the numbers are not. The
 * attribute `seed` says nothing to it: the host's seed does. */
#include "graph/dtype.h"
#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"
#include "onnx/tensor.h"

/* Numbers of a float type: from `a` up to `b`, or around `a` with the deviation `b`. */
static val *draw(struct import_node *n, uint32_t op, uint32_t dtype, frit_dims dims, double a,
                 double b)
{
    frit_attrs_init attrs = E_ATTRS(init);

    if (n->failed)
        return NULL;
    if (dtype_class(dtype) != FRIT_DTYPE_FLOAT) {
        problem_node(n, "random numbers of type %s", dtype_name(dtype));
        return NULL;
    }
    attrs.dtype = dtype;
    attrs.dims = dims;
    return E_OP(n, op, &attrs, e_num(n, a), e_num(n, b));
}

/* The type of the results; `otherwise` where no attribute says it. */
static uint32_t result_dtype(struct import_node *n, uint32_t otherwise)
{
    const int32_t given = (int32_t)attr_int(n, "dtype", 0);
    const uint32_t dtype = given ? tensor_dtype(given) : otherwise;

    if (dtype == FRIT_NO_DTYPE || tensor_bits(given))
        problem_node(n, "results of type %s", tensor_dtype_name(given));
    return dtype;
}

static void random_numbers(struct import_node *n, uint32_t op, uint32_t dtype, frit_dims dims)
{
    const bool normal = op == FRIT_OP_random_normal;
    const double a = attr_float(n, normal ? "mean" : "low", 0);
    const double b = attr_float(n, normal ? "scale" : "high", 1);

    e_out(n, 0, draw(n, op, result_dtype(n, dtype), dims, a, b));
}

void onnx_row_random(struct import_node *n, uint32_t arg)
{
    struct ints shape;
    frit_dims dims = {0};

    if (!attr_ints(n, "shape", &shape) || shape.count > FRIT_MAX_RANK) {
        problem_node(n, "there is no shape, or one of more than %d dims", FRIT_MAX_RANK);
        return;
    }
    for (uint32_t i = 0; i < shape.count; i++)
        dims.dim[dims.rank++] = shape.at[i];
    random_numbers(n, arg, FRIT_F32, dims);
}

void onnx_row_random_like(struct import_node *n, uint32_t arg)
{
    const val *x = e_in(n, 0);

    random_numbers(n, arg, e_dtype(x), e_dims(x));
}

void onnx_row_bernoulli(struct import_node *n, uint32_t arg)
{
    val *p = e_in(n, 0), *u = draw(n, FRIT_OP_random_uniform, e_dtype(p), e_dims(p), 0, 1);

    (void)arg;
    e_out(n, 0, e_cast(n, e_bin(n, FRIT_OP_lt, u, p), result_dtype(n, e_dtype(p))));
}

/* x [batch, classes], logarithms of what the probabilities are proportional to: the class at which
 * they are largest when each has an own number of Gumbel's distribution added. */
void onnx_row_multinomial(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *u;
    const int64_t count = attr_int(n, "sample_size", 1);
    frit_attrs_reduce attrs = E_ATTRS(reduce);

    (void)arg;
    if (!x || x->type.rank != 2 || count < 1) {
        problem_node(n, "a tensor of classes that has not two dims, or no samples");
        return;
    }
    u = draw(n, FRIT_OP_random_uniform, FRIT_F32,
             FRIT_SHAPE(x->type.dims[0], count, x->type.dims[1]), 0, 1);
    u = e_un(n, FRIT_OP_neg, e_un(n, FRIT_OP_log, u));
    u = e_un(n, FRIT_OP_neg, e_un(n, FRIT_OP_log, u));
    attrs.axes = (frit_axes){.count = 1, .axis = {2}};
    x = E_OP(n, FRIT_OP_argmax, &attrs, e_add(n, u, e_unsqueeze(n, e_cast(n, x, FRIT_F32), 1)));
    e_out(n, 0, e_cast(n, x, result_dtype(n, FRIT_I32)));
}

/* Drops in training only, which operand 2 says since opset 12. */
void onnx_row_dropout(struct import_node *n, uint32_t arg)
{
    val *x = e_in(n, 0), *kept;
    const bool drops = n->opset >= 12 && e_has(n, 2) && e_int(n, 2, 0);
    const double ratio = drops ? e_real(n, 1, 0.5) : 0;

    (void)arg;
    if (ratio == 0) {
        e_out(n, 0, x);
        if (e_wants(n, 1))
            e_out(n, 1, e_full(n, FRIT_BOOL, e_whole(n, 1), e_dims(x)));
        return;
    }
    if (!(ratio > 0 && ratio <= 1)) {
        problem_node(n, "a ratio of %g", ratio);
        return;
    }
    kept = e_bin(n, FRIT_OP_ge, draw(n, FRIT_OP_random_uniform, FRIT_F32, e_dims(x), 0, 1),
                 e_num(n, ratio));
    e_out(n, 0,
          e_where(n, kept, e_mul(n, x, e_num(n, ratio < 1 ? 1 / (1 - ratio) : 0)), e_num(n, 0)));
    if (e_wants(n, 1))
        e_out(n, 1, kept);
}
