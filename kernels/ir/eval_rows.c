/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/eval_rows.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "ir/half.h"
#include "ir/kir.h"

#define SIGN_32 0x80000000u
#define SIGN_64 0x8000000000000000u

/* ---- values and their bits ---- */

typedef bool c_b;
typedef int32_t c_i32;
typedef uint32_t c_u32;
typedef int64_t c_i64;
typedef uint64_t c_u64;
typedef float c_f32;
typedef double c_f64;

static inline bool get_b(uint64_t bits)
{
    return bits & 1;
}

static inline int32_t get_i32(uint64_t bits)
{
    return (int32_t)(uint32_t)bits;
}

static inline uint32_t get_u32(uint64_t bits)
{
    return (uint32_t)bits;
}

static inline int64_t get_i64(uint64_t bits)
{
    return (int64_t)bits;
}

static inline uint64_t get_u64(uint64_t bits)
{
    return bits;
}

static inline float get_f32(uint64_t bits)
{
    return half_real_of((uint32_t)bits);
}

static inline double get_f64(uint64_t bits)
{
    double real;

    memcpy(&real, &bits, sizeof(real));
    return real;
}

static inline uint64_t put_b(bool value)
{
    return value;
}

static inline uint64_t put_i32(int64_t value)
{
    return (uint32_t)value;
}

static inline uint64_t put_u32(uint64_t value)
{
    return (uint32_t)value;
}

static inline uint64_t put_i64(int64_t value)
{
    return (uint64_t)value;
}

static inline uint64_t put_u64(uint64_t value)
{
    return value;
}

static inline uint64_t put_f32(float value)
{
    return half_bits_of(value);
}

static inline uint64_t put_f64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* ---- what C has no operator for ---- */

static int64_t quotient(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_of(int64_t a, int64_t b)
{
    if (b == 0)
        return a;
    return b == -1 ? 0 : a % b;
}

/* Doubles hold every product of an F32 with what is left of the power. */
static float scaled(float a, float b)
{
    return isnan(b) ? b : (float)ldexp((double)a, (int)fminf(fmaxf(b, -400), 400));
}

static float flushed(uint32_t bits)
{
    return half_real_of(bits & 0x7f800000 ? bits : bits & SIGN_32);
}

/* Adds a product to an F32; all are bits of F32s. */
static uint32_t add_product(uint32_t a, uint32_t b, uint32_t sum)
{
    return half_bits_of(flushed(half_bits_of(fmaf(flushed(a), flushed(b), flushed(sum)))));
}

static float dot2(uint32_t a, uint32_t b, uint32_t sum)
{
    sum = add_product(a & 0xffff0000, b & 0xffff0000, sum);
    return half_real_of(add_product(a << 16, b << 16, sum));
}

static uint32_t wrapped(uint32_t a, uint64_t imm)
{
    switch ((int64_t)imm) {
    case 8:
        return (uint32_t)(int8_t)a;
    case -8:
        return (uint8_t)a;
    case 16:
        return (uint32_t)(int16_t)a;
    default:
        return (uint16_t)a;
    }
}

static float rounded(float a, uint64_t imm)
{
    uint32_t fraction = frit_dtype_info_of((uint32_t)imm).fraction;

    return half_load(half_store(a, fraction), fraction);
}

/* -(double)least is exact and the first number above all others. */
static int64_t to_signed(double a, int64_t least, int64_t most)
{
    if (a != a)
        return 0;
    if (a <= (double)least)
        return least;
    return a >= -(double)least ? most : (int64_t)a;
}

static uint64_t to_unsigned(double a, uint64_t most)
{
    if (!(a > 0))
        return 0;
    return a >= (most == UINT64_MAX ? 0x1p64 : 0x1p32) ? most : (uint64_t)a;
}

/* ---- rows ---- */

#define EVAL_ROW(op, TYPE, from, to, ...)                                            \
    static void op##_##TYPE(const struct eval_lanes *lanes)                          \
    {                                                                                \
        uint64_t imm = lanes->imm;                                                   \
        (void)imm;                                                                   \
        for (uint32_t lane = 0; lane < lanes->count; lane++) {                       \
            c_##from a = get_##from(lanes->a[lane]), b = get_##from(lanes->b[lane]), \
                     c = get_##from(lanes->c[lane]);                                 \
            (void)b, (void)c;                                                        \
            lanes->out[lane] = put_##to(__VA_ARGS__);                                \
        }                                                                            \
    }
#include "ir/eval.def"
#undef EVAL_ROW

static const eval_row_fn rows[KIR_OPS][KIR_TYPES] = {
#define EVAL_ROW(op, TYPE, from, to, ...) [KIR_##op][KIR_##TYPE] = op##_##TYPE,
#include "ir/eval.def"
#undef EVAL_ROW
};

eval_row_fn eval_row(uint32_t op, uint32_t type)
{
    return rows[op][type];
}
