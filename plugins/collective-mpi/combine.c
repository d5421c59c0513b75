/* SPDX-License-Identifier: Apache-2.0 */
#include "combine.h"

#include <string.h>

#include <frit/op.h>

enum { BLOCK = 1024 }; /* elements whose sums are under way at a time */

uint32_t combine_element_bytes(uint32_t dtype)
{
    switch (dtype) {
#define FRIT_DTYPE(id, NAME, name, bits, ...) \
    case FRIT_##NAME:                         \
        return (bits) % 8 ? 0 : (bits) / 8;
#include <frit/dtypes.def>
    default:
        return 0;
    }
}

/* ---- 16-bit floats ---- */

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float load_bf16(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

static uint16_t store_bf16(float value)
{
    const uint32_t bits = bits_of_float(value);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The exponent is corrected by a product, which also makes subnormal numbers normal. */
static float load_f16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;

    if (rest >= 0x7c00)
        return float_of_bits(sign | 0x7f800000 | rest << 13);
    return float_of_bits(sign | bits_of_float(float_of_bits(rest << 13) * 0x1p112f));
}

static uint16_t store_f16(float value)
{
    const uint32_t bits = bits_of_float(value), rest = bits & 0x7fffffff;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);

    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x1ff));
    if (rest >= 0x477ff000) /* from halfway beyond the greatest on */
        return sign | 0x7c00;
    if (rest < 0x38800000) /* subnormal: the sum's last bit is that of the result */
        return (uint16_t)(sign | (bits_of_float(float_of_bits(rest) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13);
}

/* ---- sums ---- */

#define SAME(x) (x)

/* A function that combines elements of a type, whose sums are of another one. */
#define COMBINE(name, type, sum_type, load, store, scaled)                                     \
    static void name(const void *const *from, uint32_t n, uint64_t at, uint64_t count,         \
                     bool is_mean, void *into)                                                 \
    {                                                                                          \
        sum_type sum[BLOCK];                                                                   \
                                                                                               \
        for (uint64_t i = 0; i < count; i++)                                                   \
            sum[i] = (sum_type)load(((const type *)from[0])[at + i]);                          \
        for (uint32_t r = 1; r < n; r++)                                                       \
            for (uint64_t i = 0; i < count; i++)                                               \
                sum[i] = (sum_type)(sum[i] + (sum_type)load(((const type *)from[r])[at + i])); \
        for (uint64_t i = 0; i < count; i++)                                                   \
            ((type *)into)[at + i] = (type)store(is_mean ? (scaled) : sum[i]);                 \
    }

COMBINE(combine_f64, double, double, SAME, SAME, sum[i] / n)
COMBINE(combine_f32, float, float, SAME, SAME, sum[i] / (float)n)
COMBINE(combine_f16, uint16_t, float, load_f16, store_f16, sum[i] / (float)n)
COMBINE(combine_bf16, uint16_t, float, load_bf16, store_bf16, sum[i] / (float)n)
/* Integers have no mean; sums wrap, signed or not. */
COMBINE(combine_i64, uint64_t, uint64_t, SAME, SAME, sum[i])
COMBINE(combine_i32, uint32_t, uint32_t, SAME, SAME, sum[i])
COMBINE(combine_i16, uint16_t, uint32_t, SAME, SAME, sum[i])
COMBINE(combine_i8, uint8_t, uint32_t, SAME, SAME, sum[i])

struct row {
    void (*run)(const void *const *from, uint32_t n, uint64_t at, uint64_t count, bool is_mean,
                void *into);
    bool has_mean;
};

static const struct row *find_row(uint32_t dtype)
{
    static const struct row rows[] = {
        [FRIT_F64] = {combine_f64, true},  [FRIT_F32] = {combine_f32, true},
        [FRIT_F16] = {combine_f16, true},  [FRIT_BF16] = {combine_bf16, true},
        [FRIT_I64] = {combine_i64, false}, [FRIT_U64] = {combine_i64, false},
        [FRIT_I32] = {combine_i32, false}, [FRIT_U32] = {combine_i32, false},
        [FRIT_I16] = {combine_i16, false}, [FRIT_U16] = {combine_i16, false},
        [FRIT_I8] = {combine_i8, false},   [FRIT_U8] = {combine_i8, false},
    };

    return dtype < sizeof rows / sizeof *rows && rows[dtype].run ? &rows[dtype] : NULL;
}

bool combine_can(uint32_t dtype, uint32_t combine)
{
    const struct row *row = find_row(dtype);

    return row && (combine == FRIT_CHOICE_combine_sum ||
                   (combine == FRIT_CHOICE_combine_mean && row->has_mean));
}

void combine_ranks(uint32_t dtype, uint32_t combine, const void *const *from, uint32_t n,
                   uint64_t count, void *into)
{
    const struct row *row = find_row(dtype);

    for (uint64_t at = 0; at < count; at += BLOCK)
        row->run(from, n, at, count - at < BLOCK ? count - at : BLOCK,
                 combine == FRIT_CHOICE_combine_mean, into);
}
