/* SPDX-License-Identifier: Apache-2.0 */
/* Products by plain loops.  Sums are in f64 for f64, else in f32, and are rounded once to the type
 * of d; with is_tf32, operands of f32 are first rounded to tf32. */
#include "product_run.h"

#include <math.h>
#include <string.h>

#include "runtime.h"

/* ---- types ---- */

uint64_t product_type_bytes(int type)
{
    switch (type) {
    case PRODUCT_F64:
        return 8;
    case PRODUCT_F32:
        return 4;
    case PRODUCT_F16:
    case PRODUCT_BF16:
        return 2;
    default:
        return 0;
    }
}

static float f32_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static float f16_load(uint16_t bits)
{
    enum { SPECIAL = 31, FRACTION_BITS = 10 }; /* the exponent of infinities and NaNs */
    const int exponent = bits >> FRACTION_BITS & SPECIAL, fraction = bits & 1023;
    float value = exponent == SPECIAL ? (fraction ? NAN : INFINITY)
                  : exponent          ? ldexpf((float)(1024 + fraction), exponent - 25)
                                      : ldexpf((float)fraction, -24);

    return bits >> 15 ? -value : value;
}

/* Round to nearest, ties to even.  A fraction that rounds up to 2048 carries into the exponent. */
static uint16_t f16_store(float value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const float magnitude = fabsf(value);
    int exponent;

    if (isnan(value))
        return 0x7e00;
    if (magnitude >= 65520.0f)
        return sign | 0x7c00;
    exponent = magnitude < ldexpf(1, -14) ? -14 : ilogbf(magnitude);
    return (uint16_t)(sign | (((exponent + 14) << 10) +
                              (int)nearbyintf(ldexpf(magnitude, 10 - exponent))));
}

static uint16_t bf16_store(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double load(int type, uint64_t base, int64_t index)
{
    const uint64_t at = base + (uint64_t)index * product_type_bytes(type);
    uint16_t half;
    float f32;
    double f64;

    switch (type) {
    case PRODUCT_F64:
        memcpy(&f64, (const void *)(uintptr_t)at, sizeof f64);
        return f64;
    case PRODUCT_F32:
        memcpy(&f32, (const void *)(uintptr_t)at, sizeof f32);
        return (double)f32;
    default:
        memcpy(&half, (const void *)(uintptr_t)at, sizeof half);
        return (double)(type == PRODUCT_F16 ? f16_load(half) : f32_of_bits((uint32_t)half << 16));
    }
}

static void store(int type, uint64_t base, int64_t index, double value)
{
    void *to = (void *)(uintptr_t)(base + (uint64_t)index * product_type_bytes(type));
    const float f32 = (float)value;
    const uint16_t half = type == PRODUCT_F16 ? f16_store(f32) : bf16_store(f32);

    memcpy(to,
           type == PRODUCT_F64   ? (const void *)&value
           : type == PRODUCT_F32 ? (const void *)&f32
                                 : (const void *)&half,
           product_type_bytes(type));
}

/* ---- memory ---- */

bool product_has_matrix(const struct product *p, const struct matrix *matrix)
{
    const uint64_t elements = (uint64_t)(p->batches - 1) * (uint64_t)matrix->batch_step +
                              (matrix->columns - 1) * (uint64_t)matrix->leading + matrix->rows;

    return p->has_memory(matrix->at, elements * product_type_bytes(matrix->type));
}

static void check_memory(const struct product *p)
{
    if (!product_has_matrix(p, &p->a) || !product_has_matrix(p, &p->b) ||
        !product_has_matrix(p, &p->d) ||
        (p->bias && !p->has_memory(p->bias, (uint64_t)p->m * product_type_bytes(p->d.type))) ||
        (p->workspace_bytes && !p->has_memory(p->workspace, p->workspace_bytes)))
        abort_wrong_call("a product whose memory was freed before it ran");
}

/* ---- the product ---- */

static double element(const struct matrix *matrix, int64_t batch, int64_t row, int64_t column)
{
    const int64_t across = matrix->transposed ? row : column,
                  along = matrix->transposed ? column : row;

    return load(matrix->type, matrix->at,
                batch * matrix->batch_step + across * matrix->leading + along);
}

/* Rounded to 10 bits of fraction, to nearest, ties away from 0. */
static float tf32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return f32_of_bits(isfinite(value) ? (bits + 0x1000) & ~UINT32_C(0x1fff) : bits);
}

static double sum(const struct product *p, int64_t batch, int64_t row, int64_t column)
{
    double wide = 0;
    float narrow = 0;

    for (int64_t l = 0; l < p->k; l++) {
        const double a = element(&p->a, batch, row, l), b = element(&p->b, batch, l, column);

        if (p->d.type == PRODUCT_F64)
            wide += a * b;
        else if (p->is_tf32)
            narrow += tf32((float)a) * tf32((float)b);
        else
            narrow += (float)a * (float)b;
    }
    return p->d.type == PRODUCT_F64 ? wide : (double)narrow;
}

void product_run(const void *data)
{
    enum { POISON = 0xff };
    const struct product *p = data;

    check_memory(p);
    if (p->workspace_bytes)
        memset((void *)(uintptr_t)p->workspace, POISON, p->workspace_bytes);
    for (int64_t batch = 0; batch < p->batches; batch++)
        for (int64_t column = 0; column < p->n; column++)
            for (int64_t row = 0; row < p->m; row++)
                store(p->d.type, p->d.at, batch * p->d.batch_step + column * p->d.leading + row,
                      sum(p, batch, row, column) + (p->bias ? load(p->d.type, p->bias, row) : 0));
}
