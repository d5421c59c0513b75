/* SPDX-License-Identifier: Apache-2.0 */
#include "host/graph/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/scalar.h"
#include "unit.h"

/* An op with its operands; a scalar is an array of rank 0. */
struct step {
    const void *attrs;
    uint32_t n_in;
    struct array *in;
    struct array out; /* type set, cells to fill */
};

typedef void (*eval_fn)(struct step *s);

bool eval_is_float(uint32_t dtype)
{
    return dtype_class(dtype) == FRIT_DTYPE_FLOAT;
}

union cell eval_store(uint32_t dtype, union cell value)
{
    uint32_t spare = 64 - frit_dtype_bits(dtype);

    if (eval_is_float(dtype))
        value.f = scalar_round(value.f, dtype);
    else if (dtype_class(dtype) == FRIT_DTYPE_INT)
        value.i = (int64_t)((uint64_t)value.i << spare) >> spare;
    else
        value.i = (int64_t)((uint64_t)value.i << spare >> spare);
    return value;
}

static uint64_t mix(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

uint32_t eval_word32(int64_t index)
{
    return (uint32_t)mix((uint64_t)index);
}

uint64_t eval_word64(int64_t index)
{
    return mix((uint64_t)index + 0x10000);
}

/* ---- places ---- */

/* The indices of element `flat`. */
static void unravel(const struct op_type *type, int64_t flat, int64_t *at)
{
    for (uint32_t i = type->rank; i-- > 0;) {
        at[i] = flat % type->dims[i];
        flat /= type->dims[i];
    }
}

/* The number of an element of x, aligned at the right with indices of rank `rank`; extent 1
 * stretches. */
static int64_t place(const struct op_type *x, uint32_t rank, const int64_t *at)
{
    int64_t flat = 0;

    for (uint32_t i = 0; i < x->rank; i++)
        flat = flat * x->dims[i] + (x->dims[i] == 1 ? 0 : at[rank - x->rank + i]);
    return flat;
}

/* The operand's element that broadcasts to element `flat` of the result. */
static union cell stretched(const struct step *s, uint32_t operand, int64_t flat)
{
    int64_t at[FRIT_MAX_RANK] = {0};

    unravel(&s->out.type, flat, at);
    return s->in[operand].cells[place(&s->in[operand].type, s->out.type.rank, at)];
}

/* ---- elementwise ---- */

#define EACH for (int64_t i = 0, n = op_elements(&s->out.type); i < n; i++)

#define EVAL_F1(row, expression)              \
    static void eval_##row(struct step *s)    \
    {                                         \
        EACH                                  \
        {                                     \
            double x = s->in[0].cells[i].f;   \
                                              \
            s->out.cells[i].f = (expression); \
        }                                     \
    }

EVAL_F1(exp, exp(x))
EVAL_F1(expm1, expm1(x))
EVAL_F1(log, log(x))
EVAL_F1(log1p, log1p(x))
EVAL_F1(sqrt, sqrt(x))
EVAL_F1(erf, erf(x))
EVAL_F1(sin, sin(x))
EVAL_F1(cos, cos(x))
EVAL_F1(floor, floor(x))

/* A row over floats and integers; y is the second operand, if there is one. */
#define EVAL_N(row, of_float, of_integer)                                        \
    static void eval_##row(struct step *s)                                       \
    {                                                                            \
        EACH                                                                     \
        {                                                                        \
            union cell a = stretched(s, 0, i), b = stretched(s, s->n_in > 1, i); \
            double x = a.f, y = b.f;                                             \
            uint64_t u = (uint64_t)a.i, v = (uint64_t)b.i;                       \
                                                                                 \
            (void)x, (void)y, (void)u, (void)v;                                  \
            if (eval_is_float(s->in[0].type.dtype))                              \
                s->out.cells[i] = (of_float);                                    \
            else                                                                 \
                s->out.cells[i] = (of_integer);                                  \
        }                                                                        \
    }

#define F(value) ((union cell){.f = (value)})
#define I(value) ((union cell){.i = (int64_t)(value)})

EVAL_N(abs, F(fabs(x)), I(a.i < 0 ? 0 - u : u))
EVAL_N(neg, F(-x), I(0 - u))
EVAL_N(add, F(x + y), I(u + v))
EVAL_N(sub, F(x - y), I(u - v))
EVAL_N(mul, F(x *y), I(u *v))
EVAL_N(div, F(x / y), I(b.i ? a.i / b.i : 0))
EVAL_N(rem, F(x - floor(x / y) * y), I(v ? u % v : 0))
EVAL_N(shr, F(NAN), I(u >> v))
EVAL_N(maximum, F(isnan(x) || x > y ? x : y), I(a.i > b.i ? a.i : b.i))
EVAL_N(minimum, F(isnan(x) || x < y ? x : y), I(a.i < b.i ? a.i : b.i))
EVAL_N(atan2, F(atan2(x, y)), I(0))
EVAL_N(hypot, F(hypot(x, y)), I(0))
EVAL_N(eq, I(x == y), I(a.i == b.i))
EVAL_N(lt, I(x < y), I(a.i < b.i))
EVAL_N(le, I(x <= y), I(a.i <= b.i))
EVAL_N(and, F(NAN), I(u &v))

static void eval_not(struct step *s)
{
    EACH s->out.cells[i].i =
        s->out.type.dtype == FRIT_BOOL ? !s->in[0].cells[i].i : ~s->in[0].cells[i].i;
}

static void eval_where(struct step *s)
{
    EACH s->out.cells[i] = stretched(s, stretched(s, 0, i).i ? 1 : 2, i);
}

static void eval_cast(struct step *s)
{
    bool from = eval_is_float(s->in[0].type.dtype), to = eval_is_float(s->out.type.dtype);
    bool is_unsigned = dtype_class(s->in[0].type.dtype) == FRIT_DTYPE_UINT;

    assert_true(to || !from); /* floats to integers do not occur */
    EACH
    {
        union cell x = s->in[0].cells[i];

        if (to && !from)
            x.f = is_unsigned ? (double)(uint64_t)x.i : (double)x.i;
        s->out.cells[i] = x;
    }
}

/* ---- layout ---- */

static void eval_same(struct step *s)
{
    EACH s->out.cells[i] = s->in[0].cells[i];
}

static void eval_expand(struct step *s)
{
    EACH s->out.cells[i] = stretched(s, 0, i);
}

static void eval_permute(struct step *s)
{
    const frit_attrs_order *a = s->attrs;

    EACH
    {
        int64_t at[FRIT_MAX_RANK] = {0}, from[FRIT_MAX_RANK] = {0};

        unravel(&s->out.type, i, at);
        for (uint32_t d = 0; d < s->out.type.rank; d++)
            from[a->order.axis[d]] = at[d];
        s->out.cells[i] = s->in[0].cells[place(&s->in[0].type, s->out.type.rank, from)];
    }
}

static void eval_slice(struct step *s)
{
    const frit_attrs_slice *a = s->attrs;

    EACH
    {
        int64_t at[FRIT_MAX_RANK] = {0};

        unravel(&s->out.type, i, at);
        for (uint32_t d = 0; d < s->out.type.rank; d++)
            at[d] = a->slices.dim[d].start + at[d] * a->slices.dim[d].step;
        s->out.cells[i] = s->in[0].cells[place(&s->in[0].type, s->out.type.rank, at)];
    }
}

static void eval_flip(struct step *s)
{
    const frit_attrs_axes *a = s->attrs;

    EACH
    {
        int64_t at[FRIT_MAX_RANK] = {0};

        unravel(&s->out.type, i, at);
        for (int64_t k = 0; k < a->axes.count; k++)
            at[a->axes.axis[k]] = s->out.type.dims[a->axes.axis[k]] - 1 - at[a->axes.axis[k]];
        s->out.cells[i] = s->in[0].cells[place(&s->in[0].type, s->out.type.rank, at)];
    }
}

static void eval_cat(struct step *s)
{
    const frit_attrs_axis *a = s->attrs;

    EACH
    {
        int64_t at[FRIT_MAX_RANK] = {0};
        uint32_t k = 0;

        unravel(&s->out.type, i, at);
        while (at[a->axis] >= s->in[k].type.dims[a->axis])
            at[a->axis] -= s->in[k++].type.dims[a->axis];
        s->out.cells[i] = s->in[k].cells[place(&s->in[k].type, s->out.type.rank, at)];
    }
}

/* Without cropping. */
static void eval_pad(struct step *s)
{
    const frit_attrs_pad *a = s->attrs;
    int64_t n_in = op_elements(&s->in[0].type);

    EACH s->out.cells[i] = s->in[1].cells[0];
    for (int64_t i = 0; i < n_in; i++) {
        int64_t at[FRIT_MAX_RANK] = {0};

        unravel(&s->in[0].type, i, at);
        for (uint32_t d = 0; d < s->out.type.rank; d++) {
            assert_true(a->low.dim[d] >= 0 && a->high.dim[d] >= 0);
            at[d] = a->low.dim[d] + at[d] * (1 + a->inner.dim[d]);
        }
        s->out.cells[place(&s->out.type, s->out.type.rank, at)] = s->in[0].cells[i];
    }
}

/* ---- filling ---- */

static void eval_full(struct step *s)
{
    EACH s->out.cells[i] = s->in[0].cells[0];
}

static void eval_arange(struct step *s)
{
    assert_false(eval_is_float(s->out.type.dtype));
    EACH s->out.cells[i].i = s->in[0].cells[0].i + i * s->in[1].cells[0].i;
}

static void eval_random_raw(struct step *s)
{
    bool narrow = s->out.type.dtype == FRIT_U32;

    EACH s->out.cells[i].i = narrow ? eval_word32(i) : (int64_t)eval_word64(i);
}

/* ---- combining ---- */

/* Adds, or keeps the larger or smaller; NaN stays. */
static union cell combine(uint32_t dtype, int64_t update, union cell x, union cell y)
{
    bool is_float = eval_is_float(dtype), less = is_float ? x.f < y.f : x.i < y.i;

    if (update == FRIT_CHOICE_update_add)
        return is_float ? F(x.f + y.f) : I((uint64_t)x.i + (uint64_t)y.i);
    if (update == FRIT_CHOICE_update_mul)
        return is_float ? F(x.f * y.f) : I((uint64_t)x.i * (uint64_t)y.i);
    if (update == FRIT_CHOICE_update_assign)
        return y;
    if (is_float && (isnan(x.f) || isnan(y.f)))
        return F(NAN);
    return less == (update == FRIT_CHOICE_update_min) ? x : y;
}

static void reduce(struct step *s, int64_t update, union cell start)
{
    const frit_attrs_reduce *a = s->attrs;
    struct op_type kept = s->in[0].type;
    int64_t n_in = op_elements(&s->in[0].type), n_out = op_elements(&s->out.type);
    bool *seen = calloc((size_t)n_out + 1, sizeof(*seen));

    for (int64_t i = 0; i < n_out; i++)
        s->out.cells[i] = start;
    for (int64_t k = 0; k < a->axes.count; k++)
        kept.dims[a->axes.axis[k]] = 1;
    for (int64_t i = 0; i < n_in; i++) {
        int64_t at[FRIT_MAX_RANK] = {0}, to;

        unravel(&s->in[0].type, i, at);
        to = place(&kept, kept.rank, at);
        s->out.cells[to] = seen[to] || update == FRIT_CHOICE_update_add
                               ? combine(kept.dtype, update, s->out.cells[to], s->in[0].cells[i])
                               : s->in[0].cells[i];
        seen[to] = true;
    }
    free(seen);
}

static void eval_sum(struct step *s)
{
    reduce(s, FRIT_CHOICE_update_add, eval_is_float(s->out.type.dtype) ? F(0) : I(0));
}

static void eval_max(struct step *s)
{
    reduce(s, FRIT_CHOICE_update_max, I(0));
}

static void eval_min(struct step *s)
{
    reduce(s, FRIT_CHOICE_update_min, I(0));
}

static void eval_matmul(struct step *s)
{
    const struct op_type *a = &s->in[0].type, *b = &s->in[1].type;
    uint32_t rank = s->out.type.rank;

    assert_true(eval_is_float(a->dtype));
    EACH
    {
        int64_t at[FRIT_MAX_RANK] = {0}, left[FRIT_MAX_RANK], right[FRIT_MAX_RANK];
        double sum = 0;

        unravel(&s->out.type, i, at);
        memcpy(left, at, sizeof(at));
        memcpy(right, at, sizeof(at));
        for (int64_t k = 0; k < a->dims[a->rank - 1]; k++) {
            left[rank - 1] = right[rank - 2] = k;
            sum += s->in[0].cells[place(a, rank, left)].f * s->in[1].cells[place(b, rank, right)].f;
        }
        s->out.cells[i].f = sum;
    }
}

/* ---- indexing ---- */

static void eval_select(struct step *s)
{
    const frit_attrs_axis *a = s->attrs;
    int64_t extent = s->in[0].type.dims[a->axis];

    EACH
    {
        int64_t at[FRIT_MAX_RANK] = {0}, k;

        unravel(&s->out.type, i, at);
        k = s->in[1].cells[at[a->axis]].i;
        at[a->axis] = k < 0 ? 0 : k >= extent ? extent - 1 : k;
        s->out.cells[i] = s->in[0].cells[place(&s->in[0].type, s->out.type.rank, at)];
    }
}

static void eval_scatter(struct step *s)
{
    const frit_attrs_scatter *a = s->attrs;
    int64_t n_values = op_elements(&s->in[2].type);

    eval_same(s);
    for (int64_t i = 0; i < n_values; i++) {
        int64_t at[FRIT_MAX_RANK] = {0};
        union cell *to;

        unravel(&s->in[2].type, i, at);
        at[a->axis] = s->in[1].cells[i].i;
        if (at[a->axis] < 0 || at[a->axis] >= s->out.type.dims[a->axis])
            continue;
        to = &s->out.cells[place(&s->out.type, s->out.type.rank, at)];
        *to = eval_store(s->out.type.dtype,
                         combine(s->out.type.dtype, a->update, *to, s->in[2].cells[i]));
    }
}

/* ---- graphs ---- */

static const struct {
    uint32_t op;
    eval_fn fn;
} evals[] = {
    {FRIT_OP_exp, eval_exp},
    {FRIT_OP_expm1, eval_expm1},
    {FRIT_OP_log, eval_log},
    {FRIT_OP_log1p, eval_log1p},
    {FRIT_OP_sqrt, eval_sqrt},
    {FRIT_OP_erf, eval_erf},
    {FRIT_OP_sin, eval_sin},
    {FRIT_OP_cos, eval_cos},
    {FRIT_OP_floor, eval_floor},
    {FRIT_OP_abs, eval_abs},
    {FRIT_OP_neg, eval_neg},
    {FRIT_OP_not, eval_not},
    {FRIT_OP_add, eval_add},
    {FRIT_OP_sub, eval_sub},
    {FRIT_OP_mul, eval_mul},
    {FRIT_OP_div, eval_div},
    {FRIT_OP_rem, eval_rem},
    {FRIT_OP_shr, eval_shr},
    {FRIT_OP_and, eval_and},
    {FRIT_OP_maximum, eval_maximum},
    {FRIT_OP_minimum, eval_minimum},
    {FRIT_OP_atan2, eval_atan2},
    {FRIT_OP_hypot, eval_hypot},
    {FRIT_OP_eq, eval_eq},
    {FRIT_OP_lt, eval_lt},
    {FRIT_OP_le, eval_le},
    {FRIT_OP_where, eval_where},
    {FRIT_OP_cast, eval_cast},
    {FRIT_OP_copy, eval_same},
    {FRIT_OP_reshape, eval_same},
    {FRIT_OP_expand, eval_expand},
    {FRIT_OP_permute, eval_permute},
    {FRIT_OP_slice, eval_slice},
    {FRIT_OP_flip, eval_flip},
    {FRIT_OP_cat, eval_cat},
    {FRIT_OP_pad, eval_pad},
    {FRIT_OP_full, eval_full},
    {FRIT_OP_arange, eval_arange},
    {FRIT_OP_sum, eval_sum},
    {FRIT_OP_max, eval_max},
    {FRIT_OP_min, eval_min},
    {FRIT_OP_matmul, eval_matmul},
    {FRIT_OP_select, eval_select},
    {FRIT_OP_scatter, eval_scatter},
    {FRIT_OP_random_raw, eval_random_raw},
};

static eval_fn find(uint32_t op)
{
    for (size_t i = 0; i < sizeof(evals) / sizeof(evals[0]); i++) {
        if (evals[i].op == op)
            return evals[i].fn;
    }
    fail_msg("no row in eval.c: %s", op_row(op)->name);
    return NULL;
}

static union cell *cells_of(const struct op_type *type)
{
    return calloc((size_t)op_elements(type) + 1, sizeof(union cell));
}

static void run(const struct graph *graph, const struct graph_op *op, struct array *values)
{
    struct array in[16], *out = &values[op->out[0]];
    union cell scalars[16];
    struct step s = {.attrs = op->attrs, .n_in = op->n_in, .in = in};
    int64_t n;

    assert_in_range(op->n_in, 0, 16);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const struct graph_operand *from = &op->in[i];

        in[i] = values[from->kind == FRIT_OPERAND_TENSOR ? from->value : 0];
        if (from->kind == FRIT_OPERAND_SCALAR) {
            scalars[i] = from->scalar.kind == FRIT_SCALAR_F64 ? F(scalar_number(&from->scalar))
                                                              : I(from->scalar.bits);
            in[i] = (struct array){.type = {.dtype = from->dtype}, .cells = &scalars[i]};
        }
    }
    out->type = graph->values[op->out[0]].type;
    out->cells = cells_of(&out->type);
    s.out = *out;
    find(op->op)(&s);
    n = op_elements(&out->type);
    for (int64_t i = 0; i < n; i++)
        out->cells[i] = eval_store(out->type.dtype, out->cells[i]);
}

struct array eval_graph(const struct graph *graph, const struct array *inputs)
{
    struct array *values = calloc(graph->n_values + 1, sizeof(*values)), result;
    uint32_t n_inputs = 0;

    for (uint32_t i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind == GRAPH_INPUT)
            values[i] = (struct array){graph->values[i].type, inputs[n_inputs++].cells};
    }
    for (uint32_t i = 0; i < graph->n_ops; i++)
        run(graph, &graph->ops[i], values);
    assert_int_equal(graph->n_outputs, 1);
    result = values[graph->outputs[0]];
    for (uint32_t i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind == GRAPH_RESULT && i != graph->outputs[0])
            free(values[i].cells);
    }
    free(values);
    return result;
}
