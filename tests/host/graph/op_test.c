/* SPDX-License-Identifier: Apache-2.0 */
/* op_check apart from the shape rules: operands, element types, scalars, attributes by themselves;
 * names; and that no call whatsoever gets through with a result that is none. */
#include "graph/dtype.h"
#include "graph/op.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "graph/scalar.h"
#include "host/graph/calls.h"
#include "unit.h"

static void expect(const char *op, const char *operands, const void *attrs, const char *text)
{
    struct call call;

    assert_string_equal(call_check(&call, op, operands, attrs), text);
}

/* ---- classes ---- */

/* Fusers put any row of class MAP into a loop over elements, by its class alone. */
static void test_maps_are_elementwise(void **state)
{
    static const struct {
        const char *name, *attrs, *shape;
        uint32_t cls;
    } rows[] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) \
    {#name, #attrs, #shape, FRIT_CLASS_##cls},
#include <frit/ops.def>
    };
    size_t n_maps = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool same = strcmp(rows[i].shape, "same") == 0;

        if (rows[i].cls != FRIT_CLASS_MAP)
            continue;
        n_maps++;
        if (strcmp(rows[i].attrs, "none") != 0 ||
            (!same && strcmp(rows[i].shape, "broadcast") != 0))
            fail_msg("%s is of class MAP with attributes %s and shape %s", rows[i].name,
                     rows[i].attrs, rows[i].shape);
        assert_null(op_find(str_of(rows[i].name))->out[1].name);
    }
    assert_true(n_maps > 0);
}

/* ---- names and types ---- */

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(op_find(str_of("matmul"))->id, FRIT_OP_matmul);
    assert_null(op_find(str_of("matmu")));
    assert_null(op_find(str_of("matmul2")));
    assert_string_equal(op_nearest("mamtul"), "matmul");
    assert_null(op_nearest("quaternion"));
    assert_null(op_row(0));
    assert_null(op_row(FRIT_OP_LIMIT));
    assert_string_equal(dtype_name(FRIT_BF16), "bf16");
    assert_string_equal(dtype_name(FRIT_DTYPE_LIMIT), "?");
    assert_int_equal(dtype_find(str_of("u16")), FRIT_U16);
    assert_int_equal(dtype_find(str_of("")), FRIT_NO_DTYPE);
    assert_int_equal(dtype_class(FRIT_BOOL), FRIT_DTYPE_BOOL);
    assert_int_equal(dtype_class(0), 0);
    assert_int_equal(dtype_class(FRIT_DTYPE_LIMIT), 0);
}

static void test_types(void **state)
{
    const struct op_type type = {FRIT_I8, 3, {500, 0, 64}};
    struct op_type other = type;
    char text[128];

    (void)state;
    assert_string_equal(op_type_text(&type, text, sizeof(text)), "i8[500, 0, 64]");
    for (size_t size = 1; size < 15; size++) {
        memset(text, 'x', sizeof(text));
        op_type_text(&type, text, size);
        assert_int_equal(strlen(text), size - 1); /* cut, terminated, nothing after */
        assert_int_equal(text[size], 'x');
    }
    assert_int_equal(op_elements(&type), 0);
    other.dims[7] = 9; /* beyond the rank */
    assert_true(op_type_equal(&type, &other));
    other.dims[2] = 63;
    assert_false(op_type_equal(&type, &other));
}

static frit_status check_type(uint32_t dtype, uint32_t rank, int64_t a, int64_t b)
{
    const struct op_type type = {dtype, rank, {a, b}};

    return op_type_check(&type, NULL);
}

static void test_type_limits(void **state)
{
    (void)state;
    assert_int_equal(check_type(FRIT_U8, 2, 1, INT64_MAX / 8 - 1), FRIT_OK);
    assert_int_equal(check_type(FRIT_U8, 2, 1, INT64_MAX / 8 + 1), FRIT_INVALID);
    assert_int_equal(check_type(FRIT_F64, 2, 1ll << 28, 1ll << 28), FRIT_OK);
    assert_int_equal(check_type(FRIT_F64, 2, 1ll << 29, 1ll << 28), FRIT_INVALID);
    assert_int_equal(check_type(FRIT_F32, 2, INT64_MAX, INT64_MAX), FRIT_INVALID);
    /* strides of what has no elements must fit too */
    assert_int_equal(check_type(FRIT_F32, 2, 0, INT64_MAX), FRIT_INVALID);
    assert_int_equal(check_type(FRIT_F32, 2, 0, 5), FRIT_OK);
    assert_int_equal(check_type(FRIT_F32, 2, 1, -1), FRIT_INVALID);
    assert_int_equal(check_type(FRIT_F32, 9, 1, 1), FRIT_INVALID);
    assert_int_equal(check_type(FRIT_NO_DTYPE, 0, 0, 0), FRIT_INVALID);
    assert_int_equal(check_type(7, 0, 0, 0), FRIT_INVALID);
}

/* ---- operands ---- */

static void test_operands(void **state)
{
    struct op_type out[FRIT_OP_MAX_OUT];
    struct op_call none = {.op = 9999};
    frit_err err;

    (void)state;
    assert_int_equal(op_check(&none, out, &err), FRIT_INVALID);
    assert_string_equal(err.text, "there is no op 9999");
    expect("add", "f32[2]", NULL, "add: 1 operand given, it takes 2");
    expect("conv", "f32[2]; f32[2]", NULL, "conv: 2 operands given, it takes 3");
    expect("zeros", "1", ATTRS(init, .dtype = FRIT_F32), "zeros: 1 operand given, it takes 0");
    expect("cat", "", NULL, "cat: 0 operands given, it takes at least 1");
    expect("add", "f32[2]; none", NULL, "add: operand b is missing");
    expect("exp", "1", NULL, "exp: x must be a tensor, not a scalar");
    expect("matmul", "f32[2, 2]; 1", NULL, "matmul: b must be a tensor, not a scalar");
    expect("where", "1; f32[2]; f32[2]", NULL, "where: mask must be a tensor, not a scalar");
    expect("full", "f32[2]", ATTRS(init, .dtype = FRIT_F32),
           "full: value must be a scalar, not a tensor");
    expect("layer_norm", "f32[2]; 1; none", NULL,
           "layer_norm: gamma must be a tensor, not a scalar");
    expect("add", "1; 2", NULL,
           "add: a is a scalar, so another operand of its type must be a tensor");
    expect("where", "bool[2]; 1; 2", NULL,
           "where: a is a scalar, so another operand of its type must be a tensor");
    expect("mask_fill", "1; bool[2]; i16[2]", NULL, "i16[2]");
}

static void test_letters(void **state)
{
    (void)state;
    expect("add", "f32[2]; f16[2]", NULL,
           "add: a is f32[2] but b is f16[2]; they must have one element type, cast one of them");
    expect("cat", "f32[2]; f32[2]; i8[2]", ATTRS(axis, .axis = 0),
           "cat: xs is f32[2] but xs is i8[2]; they must have one element type, cast one of them");
    expect("add", "bool[2]; 1", NULL, "add: a is bool[2], it must be a float or integer type");
    expect("exp", "i32[2]", NULL, "exp: x is i32[2], it must be a float type");
    expect("shl", "f32[2]; 1", NULL, "shl: a is f32[2], it must be an integer type");
    expect("not", "f32[2]", NULL, "not: x is f32[2], it must be an integer type or bool");
    expect("where", "u8[2]; f32[2]; 0", NULL, "where: mask is u8[2], it must be bool");
    expect("select", "f32[2]; i16[2]", NULL, "select: index is i16[2], it must be i32 or i64");
    expect("copy", "q8[2]", NULL,
           "copy: x is q8[2], it must be any type that is not packed (packed types only pass "
           "through quantize and dequantize)");
    expect("dequantize", "f32[2]; f32[]; none", NULL,
           "dequantize: x is f32[2], it must be a packed type");
    expect("cast", "f32[2]", ATTRS(cast, .dtype = FRIT_Q4),
           "cast: attribute dtype is q4, it must be any type that is not packed");
    expect("quantize", "f32[2]; f32[]; none", ATTRS(quantize, .dtype = FRIT_I8),
           "quantize: attribute dtype is i8, it must be a packed type");
    expect("add", "f32[2, -1]; 1", NULL, "add: operand a: dim 1 has the negative extent -1");
    /* letters of their own: the mask beside T, the index beside T */
    expect("where", "bool[2]; u64[2]; u64[2]", NULL, "u64[2]");
    expect("gather", "bool[2]; i32[2]", ATTRS(axis, .axis = 0), "bool[2]");
    expect("max_pool", "f16[1, 1, 4]", ATTRS(max_pool, .kernel = {2}),
           "f16[1, 1, 2]; i64[1, 1, 2]");
}

static void test_wanted(void **state)
{
    struct call call;

    (void)state;
    call_fill(&call, "max_pool", "f32[1, 1, 4]", ATTRS(max_pool, .kernel = {2}));
    call.call.wanted = 0;
    assert_int_equal(op_check(&call.call, call.out, NULL), FRIT_OK);
    assert_int_equal(call.out[0].dtype, FRIT_F32);
    assert_int_equal(call.out[1].dtype, FRIT_NO_DTYPE);
    /* a plain output is there whether the bit is set or not */
    call_fill(&call, "rfft", "f32[4]", NULL);
    call.call.wanted = 0;
    assert_int_equal(op_check(&call.call, call.out, NULL), FRIT_OK);
    assert_int_equal(call.out[1].dtype, FRIT_F32);
}

/* ---- scalars ---- */

static void expect_scalar(const char *type, frit_scalar given, frit_scalar left)
{
    struct call call;

    call_fill(&call, "where", "bool[1]; f32[1]; 0", NULL);
    call.in[1].type = type_of(type);
    call.in[2].scalar = given;
    assert_int_equal(op_check(&call.call, call.out, &call.err), FRIT_OK);
    assert_int_equal(call.in[2].scalar.kind, left.kind);
    assert_int_equal(call.in[2].scalar.bits, left.bits);
    assert_int_equal(call.in[2].type.dtype, type_of(type).dtype);
    assert_int_equal(call.in[2].type.rank, 0);
}

static void test_scalars(void **state)
{
    (void)state;
    expect("add", "u8[2]; 300", NULL,
           "add: b = 300 is out of range; u8 takes whole numbers from 0 to 255");
    expect("add", "i8[2]; -129", NULL,
           "add: b = -129 is out of range; i8 takes whole numbers from -128 to 127");
    expect("add", "u16[2]; -1", NULL,
           "add: b = -1 is negative; u16 takes whole numbers from 0 to 65535");
    expect("add", "i32[2]; 0.5", NULL,
           "add: b = 0.5 is not a whole number; i32 takes whole numbers from -2147483648 to "
           "2147483647");
    expect("add", "i64[2]; 1e19", NULL,
           "add: b = 1e+19 is out of range; i64 takes whole numbers from "
           "-9223372036854775808 to 9223372036854775807");
    expect("add", "i32[2]; nan", NULL,
           "add: b = nan is not a whole number; i32 takes whole numbers from -2147483648 to "
           "2147483647");
    expect("eq", "bool[2]; 2", NULL, "eq: b = 2 is neither 0 nor 1; bool takes 0 and 1");
    expect("add", "f16[2]; 65520", NULL,
           "add: b = 65520 is out of range; f16 takes numbers up to 65504 in size");
    expect("add", "f32[2]; 1e39", NULL,
           "add: b = 1e+39 is out of range; f32 takes numbers up to 3.40282e+38 "
           "in size");
    expect("add", "bf16[2]; 3.4e38", NULL,
           "add: b = 3.4e+38 is out of range; bf16 takes numbers up to 3.38953e+38 "
           "in size");
    expect("add", "f16[2]; 65519", NULL, "f16[2]");
    expect("add", "f32[2]; -inf", NULL, "f32[2]");
    expect("full", "-1", ATTRS(init, .dtype = FRIT_U64),
           "full: value = -1 is negative; u64 takes whole numbers from 0 to 18446744073709551615");

    expect_scalar("f32[1]", scalar_i(3), scalar_f(3));
    expect_scalar("u8[1]", scalar_f(255), scalar_u(255));
    expect_scalar("i8[1]", scalar_f(-128), scalar_i(-128));
    expect_scalar("u64[1]", scalar_u(UINT64_MAX), scalar_u(UINT64_MAX));
    expect_scalar("u64[1]", scalar_f(0x1p63), scalar_u(1ull << 63));
    expect_scalar("i64[1]", scalar_f(-0x1p63), scalar_i(INT64_MIN));
    expect_scalar("bool[1]", scalar_f(1), scalar_i(1));
    expect_scalar("i32[1]", scalar_f(-0.0), scalar_i(0));
    expect_scalar("f64[1]", scalar_f(0.1), scalar_f(0.1));
    /* in the place of a tensor it has the tensor's precision */
    expect_scalar("f32[1]", scalar_f(0.1), scalar_f((double)0.1f));
    expect_scalar("f16[1]", scalar_f(0.1), scalar_f(0.0999755859375));
    expect_scalar("bf16[1]", scalar_f(0.1), scalar_f(0.10009765625));
}

static void test_scalar_kinds(void **state)
{
    struct call call;

    (void)state;
    /* NUM operands keep what they were given: arange computes in f64 */
    call_check(&call, "arange", "0; 0.1", ATTRS(init, .dtype = FRIT_F32, .dims = {1, {3}}));
    assert_true(scalar_number(&call.in[1].scalar) == 0.1);
    /* a NUM whose letter no operand has is f32 */
    call_check(&call, "random_bernoulli", "1", ATTRS(init, .dtype = FRIT_I8, .dims = {1, {3}}));
    assert_int_equal(call.in[0].type.dtype, FRIT_F32);
    assert_int_equal(call.in[0].scalar.kind, FRIT_SCALAR_F64);
    call_fill(&call, "add", "f32[1]; 0", NULL);
    call.in[1].scalar.kind = 7;
    assert_int_equal(op_check(&call.call, call.out, NULL), FRIT_INVALID);
}

/* Rounding of floats that the machine has against the machine. */
static void test_rounding(void **state)
{
    uint64_t bits = 88172645463325252ull;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        union {
            uint32_t u;
            float f;
        } low;
        double value;

        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        low.u = (uint32_t)bits;
        if (!isfinite(low.f))
            continue;
        value =
            low.f + (double)nextafterf(low.f, INFINITY); /* halfway between two, twice as large */
        assert_true(scalar_round(value, FRIT_F32) == (double)(float)value);
        value *= 1.0 + (double)(int32_t)(bits >> 32) * 0x1p-70;
        assert_true(scalar_round(value, FRIT_F32) == (double)(float)value);
    }
    /* halves to even, subnormals, the last before infinity */
    assert_true(scalar_round(2049, FRIT_F16) == 2048);
    assert_true(scalar_round(2051, FRIT_F16) == 2052);
    assert_true(scalar_round(0x1p-25, FRIT_F16) == 0);
    assert_true(scalar_round(0x1.8p-25, FRIT_F16) == 0x1p-24);
    assert_true(scalar_round(0x1.3p-24, FRIT_F16) == 0x1p-24);
    assert_true(isinf(scalar_round(65520, FRIT_F16)));
    assert_true(scalar_round(257, FRIT_BF16) == 256);
    assert_true(scalar_round(0x1p-134, FRIT_BF16) == 0);
    assert_true(isinf(scalar_round(0x1.ffp127, FRIT_BF16)));
    assert_true(signbit(scalar_round(-0.0, FRIT_F16)));
}

/* ---- attributes ---- */

static void test_attributes(void **state)
{
    struct call call;
    struct {
        frit_attrs_axis known;
        int64_t newer;
    } grown = {{.struct_size = sizeof(grown), .axis = 1}, 0};
    frit_attrs_conv old = {.struct_size = offsetof(frit_attrs_conv, padding), .padding = {9, 9, 9}};
    union attrs copy;

    (void)state;
    expect("sum", "f32[2]", ATTRS(reduce, .keep = 2), "sum: attribute keep is neither 0 nor 1");
    expect("scatter", "f32[2]; i32[2]; f32[2]", ATTRS(scatter, .update = 5),
           "scatter: attribute update is none of the choices");
    expect("zeros", "", NULL, "zeros: attribute dtype is not an element type");
    expect("zeros", "", ATTRS(init, .dtype = 1ll << 32 | FRIT_F32),
           "zeros: attribute dtype is not an element type");
    expect("sum", "f32[2]", ATTRS(reduce, .axes = {9, {0}}),
           "sum: attribute axes has more entries than the 8 dims that a tensor can have");
    expect("sum", "f32[2]", ATTRS(reduce, .axes = {-1, {0}}),
           "sum: attribute axes has a negative count");
    expect("conv", "f32[1, 1, 4]; f32[1, 1, 3]; none", ATTRS(conv, .padding = {-1}),
           "conv: attribute padding has a negative entry");
    expect("conv", "f32[1, 1, 4]; f32[1, 1, 3]; none", ATTRS(conv, .stride = {1ll << 31}),
           "conv: attribute stride has an entry beyond 2147483647");
    expect("repeat", "f32[2]", ATTRS(repeat, .times = -1), "repeat: attribute times is negative");
    expect("rms_norm", "f32[2]; none", ATTRS(norm_axes, .eps = (double)NAN),
           "rms_norm: attribute eps is not finite");

    /* what lies beyond a count does not matter and is cleared */
    call_fill(&call, "sum", "f32[2, 3]", ATTRS(reduce, .axes = {1, {0, 77}}));
    assert_int_equal(op_check(&call.call, call.out, NULL), FRIT_OK);
    assert_int_equal(call.attrs.reduce.axes.axis[1], 0);
    call_fill(&call, "sum", "f32[2, 3]", NULL);
    call.call.attrs = NULL;
    assert_int_equal(op_check(&call.call, call.out, &call.err), FRIT_INVALID);
    assert_string_equal(call.err.text, "sum: attributes are missing");

    /* records of older and newer callers */
    assert_int_equal(attrs_copy(op_row(FRIT_OP_conv), &old, &copy, NULL), FRIT_OK);
    assert_int_equal(copy.conv.padding[0], 0);
    assert_int_equal(copy.conv.struct_size, sizeof(frit_attrs_conv));
    assert_int_equal(attrs_copy(op_row(FRIT_OP_cumsum), &grown, &copy, NULL), FRIT_OK);
    assert_int_equal(copy.axis.axis, 1);
    grown.newer = 1;
    assert_int_equal(attrs_copy(op_row(FRIT_OP_cumsum), &grown, &copy, NULL), FRIT_UNSUPPORTED);
    grown.known.struct_size = 0;
    assert_int_equal(attrs_copy(op_row(FRIT_OP_cumsum), &grown, &copy, NULL), FRIT_INVALID);
}

/* ---- any call ---- */

static uint64_t state_bits = 1;

static uint64_t draw(uint64_t n)
{
    state_bits ^= state_bits << 13;
    state_bits ^= state_bits >> 7;
    state_bits ^= state_bits << 17;
    return (state_bits >> 11) % n;
}

/* Mostly small, now and then extreme. */
static int64_t draw_number(void)
{
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX, INT32_MAX, 1ll << 40, -1, 8, 9};

    return draw(40) ? (int64_t)draw(5) - (draw(6) == 0) * 2 : extremes[draw(7)];
}

static void draw_type(struct op_type *type, const frit_slot_info *slot)
{
    static const uint32_t plain[] = {FRIT_F32, FRIT_F32, FRIT_I32, FRIT_BOOL, FRIT_Q4, FRIT_U8};

    type->dtype = slot->letter == FRIT_LETTER_I      ? FRIT_I64
                  : slot->letter == FRIT_LETTER_BOOL ? FRIT_BOOL
                  : slot->letter == FRIT_LETTER_P    ? FRIT_Q8
                  : draw(20)                         ? FRIT_F32
                                                     : plain[draw(6)];
    type->rank = (uint32_t)draw(6);
    for (uint32_t i = 0; i < type->rank; i++)
        type->dims[i] = draw(50) ? (int64_t)draw(4) : draw_number();
}

static void draw_field(const frit_field_info *field, char *at)
{
    int64_t *numbers = (int64_t *)at;
    bool list = field->type == FRIT_ATTR_AXES || field->type == FRIT_ATTR_DIMS ||
                field->type == FRIT_ATTR_SLICES;

    if (field->type == FRIT_ATTR_REAL) {
        *(double *)at = draw(4) ? 0 : (double)draw_number();
        return;
    }
    for (size_t i = 0; i < field->size / sizeof(int64_t); i++)
        numbers[i] = draw(3) ? draw_number() : 0;
    if (list)
        numbers[0] = (int64_t)draw(4);
    if (field->type == FRIT_ATTR_DTYPE)
        numbers[0] = draw(4) ? FRIT_F32 : (int64_t)draw(FRIT_DTYPE_LIMIT);
}

static void draw_call(struct call *call, const frit_op_info *row)
{
    const frit_record_info *record = frit_record_info_at(row->record);

    *call = (struct call){.call = {.op = row->id, .wanted = (uint32_t)draw(32), .in = call->in}};
    call->call.n_in = op_n_slots(row) + (row->in[0].role == FRIT_ROLE_MANY ? (uint32_t)draw(3) : 0);
    for (uint32_t i = 0; i < call->call.n_in; i++) {
        const frit_slot_info *slot = op_slot(row, call->call.n_in, i);

        call->in[i].kind = slot->role == FRIT_ROLE_NUM   ? FRIT_OPERAND_SCALAR
                           : slot->role == FRIT_ROLE_OPT ? (uint32_t)draw(2)
                           : draw(8)                     ? FRIT_OPERAND_TENSOR
                                                         : (uint32_t)draw(4);
        call->in[i].scalar = draw(2) ? scalar_i(draw_number()) : scalar_f((double)draw(9) / 2);
        draw_type(&call->in[i].type, slot);
        if (i > 0 && draw(2))
            call->in[i].type = call->in[0].type;
    }
    if (!record->n_fields)
        return;
    call->attrs.none.struct_size = record->size;
    call->call.attrs = &call->attrs;
    for (uint32_t i = 0; i < record->n_fields; i++)
        draw_field(&record->field[i], (char *)&call->attrs + record->field[i].offset);
}

/* A random call is refused with a text that begins with the op, or gives results with valid types;
 * in that case the call, whose attributes now have their final values, passes a second time without
 * a change. */
static void test_any_call(void **state)
{
    static const uint32_t ids[] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) id,
#include <frit/ops.def>
    };
    uint32_t passed[FRIT_OP_LIMIT] = {0};

    (void)state;
    for (int n = 0; n < 600000; n++) {
        const frit_op_info *row = op_row(ids[draw(sizeof(ids) / sizeof(ids[0]))]);
        struct call call, again;

        draw_call(&call, row);
        call.status = op_check(&call.call, call.out, &call.err);
        if (call.status) {
            assert_int_equal(call.status, FRIT_INVALID);
            assert_memory_equal(call.err.text, row->name, strlen(row->name));
            continue;
        }
        passed[row->id]++;
        for (uint32_t k = 0; k < op_n_out(row); k++) {
            if (row->out[k].role == FRIT_ROLE_OUT || (call.call.wanted >> k & 1))
                assert_int_equal(op_type_check(&call.out[k], NULL), FRIT_OK);
        }
        again = call;
        again.call.in = again.in;
        again.call.attrs = call.call.attrs ? &again.attrs : NULL;
        assert_int_equal(op_check(&again.call, again.out, &again.err), FRIT_OK);
        assert_memory_equal(&again.attrs, &call.attrs, sizeof(call.attrs));
        assert_memory_equal(again.in, call.in, sizeof(call.in));
        assert_memory_equal(again.out, call.out, sizeof(call.out));
    }
    /* The draw is not so wild that nothing gets through. */
    assert_true(passed[FRIT_OP_add] && passed[FRIT_OP_sum] && passed[FRIT_OP_slice] &&
                passed[FRIT_OP_pad] && passed[FRIT_OP_unfold] && passed[FRIT_OP_gather]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_are_elementwise),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_type_limits),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_scalar_kinds),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_any_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
