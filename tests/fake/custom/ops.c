/* SPDX-License-Identifier: Apache-2.0 */
/* The ops: one of each kind that a host must carry. */
#include <stdio.h>
#include <string.h>

#include "custom.h"

#define SLOT(name, role, letter)                                    \
    {                                                               \
        FRIT_STR_INIT(name), FRIT_ROLE_##role, FRIT_LETTER_##letter \
    }
#define FIELD(name, type, use, place, meaning)                                         \
    {                                                                                  \
        FRIT_STR_INIT(name), FRIT_STR_INIT(meaning), FRIT_ATTR_##type, FRIT_USE_##use, \
            FRIT_PLACE_##place, 0                                                      \
    }
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const frit_custom_operand *operand(const frit_custom_call *call, uint32_t index)
{
    return (const frit_custom_operand *)(const void *)((const char *)call->in +
                                                       (size_t)call->in_stride * index);
}

static frit_status refuse(frit_err *err, const char *why)
{
    err->status = FRIT_INVALID;
    snprintf(err->text, sizeof(err->text), "%s", why);
    return FRIT_INVALID;
}

static bool same_dims(const frit_custom_type *a, const frit_custom_type *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) == 0;
}

/* ---- how decompositions are written ---- */

static frit_custom_operand value(uint32_t number)
{
    return (frit_custom_operand){.kind = FRIT_OPERAND_TENSOR, .value = number};
}

static frit_custom_operand number(double x)
{
    frit_custom_operand out = {.kind = FRIT_OPERAND_SCALAR, .scalar = {.kind = FRIT_SCALAR_F64}};

    memcpy(&out.scalar.bits, &x, sizeof(x));
    return out;
}

static frit_status add_part(const frit_custom_build *build, uint32_t op, uint32_t n_in,
                            const frit_custom_operand *in, const void *attrs, uint32_t *out,
                            frit_err *err)
{
    const frit_custom_part part = {.struct_size = sizeof(part),
                                   .op = op,
                                   .n_in = n_in,
                                   .in_stride = sizeof(*in),
                                   .in = in,
                                   .attrs = attrs};

    return build->add(build->self, &part, out, err);
}

/* ---- axpby: alpha x + beta y ---- */

static frit_status infer_like_first(const void *self, const frit_custom_call *call,
                                    frit_custom_type *out, frit_err *err)
{
    (void)self;
    (void)err;
    *out = operand(call, 0)->type;
    return FRIT_OK;
}

static frit_status axpby_infer(const void *self, const frit_custom_call *call,
                               frit_custom_type *out, frit_err *err)
{
    if (!same_dims(&operand(call, 0)->type, &operand(call, 1)->type))
        return refuse(err, "x and y must have the same dims");
    return infer_like_first(self, call, out, err);
}

static frit_status axpby_decompose(const void *self, const frit_custom_call *call,
                                   const frit_custom_build *build, uint32_t *results, frit_err *err)
{
    const axpby_attrs *attrs = call->attrs;
    const frit_custom_operand x[2] = {value(operand(call, 0)->value), number(attrs->alpha)};
    const frit_custom_operand y[2] = {value(operand(call, 1)->value), number(attrs->beta)};
    uint32_t ax = 0, by = 0;
    frit_status st = add_part(build, FRIT_OP_mul, 2, x, NULL, &ax, err);

    (void)self;
    if (!st)
        st = add_part(build, FRIT_OP_mul, 2, y, NULL, &by, err);
    if (!st)
        st = add_part(build, FRIT_OP_add, 2, (frit_custom_operand[]){value(ax), value(by)}, NULL,
                      results, err);
    return st;
}

static const frit_custom_slot axpby_in[] = {SLOT("x", IN, F), SLOT("y", IN, F)};
static const frit_custom_slot float_out[] = {SLOT("y", OUT, F)};
static const frit_custom_field axpby_fields[] = {
    FIELD("alpha", REAL, LAUNCH, POS, "factor of x"),
    FIELD("beta", REAL, LAUNCH, NAMED, "factor of y; 0")};

/* ---- scale: a scalar beside a tensor ---- */

static const frit_custom_slot scale_in[] = {SLOT("x", IN, F), SLOT("factor", NUM, F)};

static frit_status scale_decompose(const void *self, const frit_custom_call *call,
                                   const frit_custom_build *build, uint32_t *results, frit_err *err)
{
    const frit_custom_operand in[2] = {value(operand(call, 0)->value), *operand(call, 1)};

    (void)self;
    return add_part(build, FRIT_OP_mul, 2, in, NULL, results, err);
}

/* ---- tick and note: ops with effects ---- */

static const frit_custom_slot float_in[] = {SLOT("x", IN, F)};

static frit_status infer_nothing(const void *self, const frit_custom_call *call,
                                 frit_custom_type *out, frit_err *err)
{
    (void)self;
    (void)call;
    (void)out;
    (void)err;
    return FRIT_OK;
}

/* ---- crop: every kind of attribute ---- */

typedef struct crop_attrs {
    uint32_t struct_size;
    uint32_t reserved;
    FRIT_FIELD_DIMS(dims);
    FRIT_FIELD_DTYPE(dtype);
    FRIT_FIELD_AXES(order);
    FRIT_FIELD_SLICES(where);
    FRIT_FIELD_VEC(window);
    FRIT_FIELD_AXIS(along);
    FRIT_FIELD_FLAG(wrap);
} crop_attrs;

static const frit_custom_field crop_fields[] = {FIELD("dims", DIMS, SHAPE, POS, "of the result"),
                                                FIELD("dtype", DTYPE, KEY, POS, "of the result"),
                                                FIELD("order", AXES, KEY, NAMED, "axes"),
                                                FIELD("where", SLICES, LAUNCH, NAMED, "a part"),
                                                FIELD("window", VEC, KEY, NAMED, "three numbers"),
                                                FIELD("along", AXIS, KEY, NAMED, "an axis"),
                                                FIELD("wrap", FLAG, KEY, NAMED, "yes or no")};
static const frit_custom_slot crop_out[] = {SLOT("y", OUT, D)};

static frit_status crop_infer(const void *self, const frit_custom_call *call, frit_custom_type *out,
                              frit_err *err)
{
    const crop_attrs *attrs = call->attrs;

    (void)self;
    if (attrs->struct_size != sizeof(*attrs))
        return refuse(err, "the record is not as its fields say");
    for (int64_t i = 0; i < attrs->order.count; i++)
        if (attrs->order.axis[i] < 0)
            return refuse(err, "an axis counts from the end");
    out->rank = (uint32_t)attrs->dims.rank;
    memcpy(out->dims, attrs->dims.dim, sizeof(out->dims));
    return FRIT_OK;
}

/* cast(expand(sum(x)) + wrap): values that show which attributes came. */
static frit_status crop_decompose(const void *self, const frit_custom_call *call,
                                  const frit_custom_build *build, uint32_t *results, frit_err *err)
{
    const crop_attrs *attrs = call->attrs;
    const frit_custom_operand x = value(operand(call, 0)->value);
    const frit_attrs_dims dims = {.struct_size = sizeof(dims), .dims = attrs->dims};
    const frit_attrs_cast cast = {.struct_size = sizeof(cast), .dtype = attrs->dtype};
    double tag = (double)(attrs->wrap + 2 * attrs->along + 4 * attrs->window[2] +
                          100 * attrs->where.dim[0].start + 1000 * attrs->order.count);
    frit_custom_operand in[2] = {{0}, number(tag)};
    uint32_t at = 0;
    frit_status st = add_part(build, FRIT_OP_sum, 1, &x, NULL, &at, err);

    (void)self;
    in[0] = value(at);
    if (!st)
        st = add_part(build, FRIT_OP_add, 2, in, NULL, &at, err);
    in[0] = value(at);
    if (!st)
        st = add_part(build, FRIT_OP_expand, 1, in, &dims, &at, err);
    in[0] = value(at);
    return st ? st : add_part(build, FRIT_OP_cast, 1, in, &cast, results, err);
}

/* ---- fold: any number of operands, a second result on demand, a type from infer ---- */

static const frit_custom_slot fold_in[] = {SLOT("xs", MANY, N)};
static const frit_custom_slot fold_out[] = {SLOT("sum", OUT, N), SLOT("count", XOUT, NONE)};

static frit_status fold_infer(const void *self, const frit_custom_call *call, frit_custom_type *out,
                              frit_err *err)
{
    (void)self;
    for (uint32_t i = 1; i < call->n_in; i++)
        if (!same_dims(&operand(call, 0)->type, &operand(call, i)->type))
            return refuse(err, "all operands must have the same dims");
    out[0] = operand(call, 0)->type;
    out[1] = (frit_custom_type){.dtype = FRIT_I64, .rank = 1, .dims = {2}};
    return FRIT_OK;
}

static frit_status fold_count(const frit_custom_call *call, const frit_custom_build *build,
                              uint32_t *result, frit_err *err)
{
    const frit_attrs_init init = {.struct_size = sizeof(init), .dtype = FRIT_I64, .dims = {1, {2}}};
    const frit_custom_operand n = number((double)call->n_in);

    return add_part(build, FRIT_OP_full, 1, &n, &init, result, err);
}

static frit_status fold_decompose(const void *self, const frit_custom_call *call,
                                  const frit_custom_build *build, uint32_t *results, frit_err *err)
{
    uint32_t sum = operand(call, 0)->value;
    frit_status st = FRIT_OK;

    (void)self;
    for (uint32_t i = 1; i < call->n_in && !st; i++) {
        const frit_custom_operand in[2] = {value(sum), value(operand(call, i)->value)};

        st = add_part(build, FRIT_OP_add, 2, in, NULL, &sum, err);
    }
    results[0] = sum;
    if (!st && call->wanted & 2)
        st = fold_count(call, build, &results[1], err);
    return st;
}

/* ---- noise: draws, from nothing ---- */

typedef struct noise_attrs {
    uint32_t struct_size;
    uint32_t reserved;
    FRIT_FIELD_DIMS(dims);
} noise_attrs;

static const frit_custom_slot noise_out[] = {SLOT("y", OUT, NONE)};
static const frit_custom_field noise_fields[] = {FIELD("dims", DIMS, SHAPE, POS, "of the result")};

static frit_status noise_infer(const void *self, const frit_custom_call *call,
                               frit_custom_type *out, frit_err *err)
{
    const noise_attrs *attrs = call->attrs;

    (void)self;
    (void)err;
    *out = (frit_custom_type){.dtype = FRIT_U32, .rank = (uint32_t)attrs->dims.rank};
    memcpy(out->dims, attrs->dims.dim, sizeof(out->dims));
    return FRIT_OK;
}

static frit_status noise_decompose(const void *self, const frit_custom_call *call,
                                   const frit_custom_build *build, uint32_t *results, frit_err *err)
{
    const noise_attrs *attrs = call->attrs;
    const frit_attrs_init init = {
        .struct_size = sizeof(init), .dtype = FRIT_U32, .dims = attrs->dims};

    (void)self;
    return add_part(build, FRIT_OP_random_raw, 0, NULL, &init, results, err);
}

/* ---- the table ---- */

#define IN(list)     .n_in = COUNT(list), .in = (list)
#define OUT(list)    .n_out = COUNT(list), .out = (list)
#define FIELDS(list) .n_fields = COUNT(list), .fields = (list)
#define OP(name_, meaning_, traits_)                                               \
    .struct_size = sizeof(frit_custom_op), .rev = 1, .name = FRIT_STR_INIT(name_), \
    .meaning = FRIT_STR_INIT(meaning_), .traits = (traits_),                       \
    .slot_stride = sizeof(frit_custom_slot), .field_stride = sizeof(frit_custom_field)

static const frit_custom_op ops[] = {
    {OP(CUSTOM_AXPBY, "alpha x + beta y.", FRIT_OP_COMMUTES), IN(axpby_in), OUT(float_out),
     FIELDS(axpby_fields), .infer = axpby_infer, .decompose = axpby_decompose},
    {OP(CUSTOM_SCALE, "factor x.", 0), IN(scale_in), OUT(float_out), .infer = infer_like_first,
     .decompose = scale_decompose},
    {OP(CUSTOM_TICK, "x, and says its first element.", FRIT_OP_ORDERED), IN(float_in),
     OUT(float_out), .infer = infer_like_first},
    {OP(CUSTOM_NOTE, "Says the first element of x.", FRIT_OP_ORDERED), IN(float_in),
     .infer = infer_nothing},
    {OP("org.frit.test.crop/1", "The sum of x and what the attributes add.", 0), IN(float_in),
     OUT(crop_out), FIELDS(crop_fields), .infer = crop_infer, .decompose = crop_decompose},
    {OP("org.frit.test.fold/1", "The sum of all operands.", 0), IN(fold_in), OUT(fold_out),
     .infer = fold_infer, .decompose = fold_decompose},
    {OP("org.frit.test.noise/1", "Raw words.", FRIT_OP_SEEDED), OUT(noise_out),
     FIELDS(noise_fields), .infer = noise_infer, .decompose = noise_decompose},
};

const frit_ops_table custom_ops = {.struct_size = sizeof(custom_ops),
                                   .n_ops = COUNT(ops),
                                   .op_stride = sizeof(ops[0]),
                                   .ops = ops};
