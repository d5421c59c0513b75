/* SPDX-License-Identifier: Apache-2.0 */
/* The rows.  Each op runs over whole tensors, element by element in row-major order of its result:
 * floats in double with one rounding at the store, integers in 64 bits. */
#include "rows.h"

#include <math.h>
#include <string.h>

/* ---- walking ---- */

/* Goes to the next index of `dims` in row-major order; false after the last. */
static bool next_index(int64_t *index, const int64_t *dims, uint32_t rank)
{
    for (uint32_t d = rank; d-- > 0;) {
        if (++index[d] < dims[d])
            return true;
        index[d] = 0;
    }
    return false;
}

/* An element of a tensor that broadcasts to `rank` dims. */
static char *element_at(const struct tensor *tensor, const int64_t *index, uint32_t rank)
{
    char *at = tensor->data;

    for (uint32_t d = 0; d < tensor->rank; d++)
        if (tensor->dims[d] != 1)
            at += index[d + rank - tensor->rank] * tensor->strides[d];
    return at;
}

int64_t tensor_count(const struct tensor *tensor)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < tensor->rank; d++)
        count *= tensor->dims[d];
    return count;
}

void tensor_dense(struct tensor *tensor)
{
    int64_t step = frit_dtype_bits(tensor->dtype) / 8;

    for (uint32_t d = tensor->rank; d-- > 0;) {
        tensor->strides[d] = step;
        step *= tensor->dims[d];
    }
}

void tensor_copy(const struct tensor *to, const struct tensor *from)
{
    int64_t index[FRIT_MAX_RANK] = {0};
    size_t size = frit_dtype_bits(to->dtype) / 8;

    if (tensor_count(to) == 0)
        return;
    do {
        memcpy(element_at(to, index, to->rank), element_at(from, index, to->rank), size);
    } while (next_index(index, to->dims, to->rank));
}

/* ---- rows without arithmetic ---- */

static void run_copy(const struct row_call *call)
{
    tensor_copy(&call->out, &call->in[0]);
}

static void run_cast(const struct row_call *call)
{
    const struct tensor *y = &call->out, *x = &call->in[0];
    int64_t index[FRIT_MAX_RANK] = {0};

    if (tensor_count(y) == 0)
        return;
    do {
        union number number = number_load(x->dtype, element_at(x, index, y->rank));

        number_store(y->dtype, element_at(y, index, y->rank),
                     number_cast(number, x->dtype, y->dtype));
    } while (next_index(index, y->dims, y->rank));
}

static void fill(const struct tensor *y, union number number)
{
    int64_t index[FRIT_MAX_RANK] = {0};

    if (tensor_count(y) == 0)
        return;
    do {
        number_store(y->dtype, element_at(y, index, y->rank), number);
    } while (next_index(index, y->dims, y->rank));
}

static void run_full(const struct row_call *call)
{
    fill(&call->out, call->scalar[0]);
}

static void run_zeros(const struct row_call *call)
{
    fill(&call->out, (union number){.uint = 0}); /* the 0 of every kind */
}

static void run_ones(const struct row_call *call)
{
    bool real = number_kind(call->out.dtype) == NUMBER_REAL;

    fill(&call->out, real ? (union number){.real = 1} : (union number){.uint = 1});
}

static void run_arange(const struct row_call *call)
{
    const struct tensor *y = &call->out;
    union number start = call->scalar[0], step = call->scalar[1];
    bool real = number_kind(y->dtype) == NUMBER_REAL;

    for (int64_t i = 0; i < y->dims[0]; i++) {
        union number number = real ? (union number){.real = start.real + (double)i * step.real}
                                   : (union number){.uint = start.uint + (uint64_t)i * step.uint};

        number_store(y->dtype, y->data + i * y->strides[0], number);
    }
}

/* ---- elementwise ---- */

static void run_map(const struct row_call *call)
{
    const struct tensor *y = &call->out;
    uint32_t dtype = call->in_dtype[call->row->decides];
    map_fn map = call->row->map[number_kind(dtype)];
    int64_t index[FRIT_MAX_RANK] = {0};
    union number in[ROW_OPERANDS];

    if (tensor_count(y) == 0)
        return;
    memcpy(in, call->scalar, sizeof(in));
    do {
        for (uint32_t i = 0; i < call->row->n_in; i++)
            if (call->in[i].data)
                in[i] = number_load(call->in[i].dtype, element_at(&call->in[i], index, y->rank));
        number_store(y->dtype, element_at(y, index, y->rank), map(in, dtype));
    } while (next_index(index, y->dims, y->rank));
}

static double larger(double a, double b)
{
    return isnan(a) || !(isnan(b) || b > a) ? a : b;
}

static double smaller(double a, double b)
{
    return isnan(a) || !(isnan(b) || b < a) ? a : b;
}

static uint64_t divided(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

/* MAP_FN(name, kind, result, expression): an expression over a, b, c of one kind. */
#define MAP_FN(name, type, member, result, expression)                          \
    static union number name##_##member(const union number *in, uint32_t dtype) \
    {                                                                           \
        const type a = in[0].member, b = in[1].member;                          \
                                                                                \
        (void)a, (void)b, (void)dtype;                                          \
        return (union number){.result = (expression)};                          \
    }
#define MAP_REAL(name, r) MAP_FN(name, double, real, real, r)
#define MAP_INTS(name, s, u)                         \
    MAP_FN(name, int64_t, sint, uint, (uint64_t)(s)) \
    MAP_FN(name, uint64_t, uint, uint, u)
#define MAP_TEST(name, expression)                            \
    MAP_FN(name, double, real, uint, (uint64_t)(expression))  \
    MAP_FN(name, int64_t, sint, uint, (uint64_t)(expression)) \
    MAP_FN(name, uint64_t, uint, uint, (uint64_t)(expression))

MAP_REAL(abs, fabs(a))
MAP_INTS(abs, a < 0 ? 0 - (uint64_t)a : (uint64_t)a, a)
MAP_REAL(neg, -a)
MAP_INTS(neg, 0 - (uint64_t)a, 0 - a)
MAP_REAL(exp, exp(a))
MAP_REAL(log, log(a))
MAP_REAL(sqrt, sqrt(a))
MAP_REAL(tanh, tanh(a))
MAP_REAL(sigmoid, 1 / (1 + exp(-a)))
MAP_REAL(relu, larger(a, 0))
MAP_INTS(relu, a > 0 ? a : 0, a)
MAP_INTS(not, ~(uint64_t)a, dtype == FRIT_BOOL ? !a : ~a)
MAP_REAL(add, a + b)
MAP_INTS(add, (uint64_t)a + (uint64_t)b, a + b)
MAP_REAL(sub, a - b)
MAP_INTS(sub, (uint64_t)a - (uint64_t)b, a - b)
MAP_REAL(mul, a *b)
MAP_INTS(mul, (uint64_t)a *(uint64_t)b, a *b)
MAP_REAL(div, a / b)
MAP_INTS(div, divided(a, b), b == 0 ? 0 : a / b)
MAP_REAL(maximum, larger(a, b))
MAP_INTS(maximum, a > b ? a : b, a > b ? a : b)
MAP_REAL(minimum, smaller(a, b))
MAP_INTS(minimum, a < b ? a : b, a < b ? a : b)
MAP_INTS(and, a &b, a &b)
MAP_INTS(or, a | b, a | b)
MAP_INTS(xor, a ^ b, a ^ b)
MAP_TEST(eq, a == b)
MAP_TEST(ne, a != b)
MAP_TEST(lt, a < b)
MAP_TEST(le, a <= b)
MAP_TEST(gt, a > b)
MAP_TEST(ge, a >= b)

static union number where(const union number *in, uint32_t dtype)
{
    (void)dtype;
    return in[0].uint ? in[1] : in[2];
}

/* ---- reductions ---- */

static bool has_axis(const frit_axes *axes, uint32_t axis)
{
    for (int64_t i = 0; i < axes->count; i++)
        if (axes->axis[i] == axis)
            return true;
    return false;
}

/* The reduced dims of x as a tensor at one element of y, and what x steps by along y's dims. */
struct reduction {
    struct tensor inner; /* data: of the present element */
    int64_t steps[FRIT_MAX_RANK];
};

static void reduction_init(struct reduction *r, const struct row_call *call)
{
    const struct tensor *x = &call->in[0];
    const frit_attrs_reduce *attrs = &call->attrs->reduce;
    uint32_t left = 0;

    *r = (struct reduction){.inner = {.data = x->data, .dtype = x->dtype}};
    for (uint32_t d = 0; d < x->rank; d++) {
        if (!has_axis(&attrs->axes, d)) {
            r->steps[left++] = x->strides[d];
            continue;
        }
        left += attrs->keep != 0;
        r->inner.dims[r->inner.rank] = x->dims[d];
        r->inner.strides[r->inner.rank++] = x->strides[d];
    }
}

typedef union number (*fold_fn)(union number gathered, union number number);

static union number fold(const struct tensor *inner, union number gathered, fold_fn fn)
{
    int64_t index[FRIT_MAX_RANK] = {0};

    if (tensor_count(inner) == 0)
        return gathered;
    do {
        const char *at = element_at(inner, index, inner->rank);

        gathered = fn(gathered, number_load(inner->dtype, at));
    } while (next_index(index, inner->dims, inner->rank));
    return gathered;
}

/* Folds by kind, from where they start. */
struct reducer {
    fold_fn fold[NUMBER_KINDS];
    union number start[NUMBER_KINDS];
    bool mean;
};

static void reduce(const struct row_call *call, const struct reducer *reducer)
{
    const struct tensor *y = &call->out;
    enum number_kind kind = number_kind(call->in[0].dtype);
    int64_t index[FRIT_MAX_RANK] = {0};
    struct reduction r;

    if (tensor_count(y) == 0)
        return;
    reduction_init(&r, call);
    do {
        union number result;

        r.inner.data = call->in[0].data;
        for (uint32_t d = 0; d < y->rank; d++)
            r.inner.data += index[d] * r.steps[d];
        result = fold(&r.inner, reducer->start[kind], reducer->fold[kind]);
        if (reducer->mean)
            result.real /= (double)tensor_count(&r.inner);
        number_store(y->dtype, element_at(y, index, y->rank), result);
    } while (next_index(index, y->dims, y->rank));
}

#define FOLD_FN(name, member, expression)                    \
    static union number name(union number a, union number b) \
    {                                                        \
        return (union number){.member = (expression)};       \
    }
FOLD_FN(sum_real, real, a.real + b.real)
FOLD_FN(sum_ints, uint, a.uint + b.uint)
FOLD_FN(max_real, real, larger(a.real, b.real))
FOLD_FN(max_sint, sint, b.sint > a.sint ? b.sint : a.sint)
FOLD_FN(max_uint, uint, b.uint > a.uint ? b.uint : a.uint)
FOLD_FN(min_real, real, smaller(a.real, b.real))
FOLD_FN(min_sint, sint, b.sint < a.sint ? b.sint : a.sint)
FOLD_FN(min_uint, uint, b.uint < a.uint ? b.uint : a.uint)

static void run_sum(const struct row_call *call)
{
    reduce(call, &(const struct reducer){.fold = {sum_real, sum_ints, sum_ints}});
}

static void run_mean(const struct row_call *call)
{
    reduce(call, &(const struct reducer){.fold = {sum_real, sum_ints, sum_ints}, .mean = true});
}

static void run_max(const struct row_call *call)
{
    reduce(call, &(const struct reducer){
                     .fold = {max_real, max_sint, max_uint},
                     .start = {{.real = -INFINITY}, {.sint = INT64_MIN}, {.uint = 0}}});
}

static void run_min(const struct row_call *call)
{
    reduce(call, &(const struct reducer){
                     .fold = {min_real, min_sint, min_uint},
                     .start = {{.real = INFINITY}, {.sint = INT64_MAX}, {.uint = UINT64_MAX}}});
}

/* ---- the table ---- */

#define VIEW(name, attrs)                                                        \
    {                                                                            \
        FRIT_OP_##name, FRIT_CLASS_VIEW, 1, sizeof(attrs), view_##name, NULL, 0, \
        {                                                                        \
            NULL, NULL, NULL                                                     \
        }                                                                        \
    }
#define OTHER(name, cls, n_in, attrs)                                               \
    {                                                                               \
        FRIT_OP_##name, FRIT_CLASS_##cls, n_in, sizeof(attrs), NULL, run_##name, 0, \
        {                                                                           \
            NULL, NULL, NULL                                                        \
        }                                                                           \
    }
#define MAP(name, n_in, ...)                                                             \
    {                                                                                    \
        FRIT_OP_##name, FRIT_CLASS_MAP, n_in, sizeof(frit_attrs_none), NULL, run_map, 0, \
        {                                                                                \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }
#define REALS(name) name##_real, NULL, NULL
#define INTS(name)  NULL, name##_sint, name##_uint
#define ALL(name)   name##_real, name##_sint, name##_uint

const struct row *row_of(uint32_t op)
{
    static const struct row rows[] = {
        VIEW(reshape, frit_attrs_none),
        VIEW(permute, frit_attrs_order),
        VIEW(expand, frit_attrs_none),
        VIEW(slice, frit_attrs_none),
        VIEW(flip, frit_attrs_axes),
        VIEW(unfold, frit_attrs_unfold),
        OTHER(copy, COPY, 1, frit_attrs_none),
        OTHER(cast, CAST, 1, frit_attrs_cast),
        OTHER(full, INIT, 1, frit_attrs_init),
        OTHER(zeros, INIT, 0, frit_attrs_init),
        OTHER(ones, INIT, 0, frit_attrs_init),
        OTHER(arange, INIT, 2, frit_attrs_init),
        MAP(abs, 1, ALL(abs)),
        MAP(neg, 1, ALL(neg)),
        MAP(exp, 1, REALS(exp)),
        MAP(log, 1, REALS(log)),
        MAP(sqrt, 1, REALS(sqrt)),
        MAP(tanh, 1, REALS(tanh)),
        MAP(sigmoid, 1, REALS(sigmoid)),
        MAP(relu, 1, ALL(relu)),
        MAP(not, 1, INTS(not )),
        MAP(add, 2, ALL(add)),
        MAP(sub, 2, ALL(sub)),
        MAP(mul, 2, ALL(mul)),
        MAP(div, 2, ALL(div)),
        MAP(maximum, 2, ALL(maximum)),
        MAP(minimum, 2, ALL(minimum)),
        MAP(and, 2, INTS(and)),
        MAP(or, 2, INTS(or)),
        MAP(xor, 2, INTS(xor)),
        MAP(eq, 2, ALL(eq)),
        MAP(ne, 2, ALL(ne)),
        MAP(lt, 2, ALL(lt)),
        MAP(le, 2, ALL(le)),
        MAP(gt, 2, ALL(gt)),
        MAP(ge, 2, ALL(ge)),
        {FRIT_OP_where,
         FRIT_CLASS_MAP,
         3,
         sizeof(frit_attrs_none),
         NULL,
         run_map,
         1,
         {where, where, where}},
        OTHER(sum, REDUCE, 1, frit_attrs_reduce),
        OTHER(mean, REDUCE, 1, frit_attrs_reduce),
        OTHER(max, REDUCE, 1, frit_attrs_reduce),
        OTHER(min, REDUCE, 1, frit_attrs_reduce),
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].op == op)
            return &rows[i];
    return NULL;
}
