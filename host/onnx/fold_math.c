/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops on known elements.  Integers are computed in 64 bits; what is stored is cut to
 * the type, as the table's ops wrap. */
#include <math.h>

#include "graph/dtype.h"
#include "onnx/fold.h"

/* A function of this name whose result is `whole` for integers and `real` for floats. */
#define MAP(name, whole_result, real_result)                                                \
    static struct fold_number name(const struct fold_number *in, bool real, uint32_t dtype) \
    {                                                                                       \
        (void)dtype;                                                                        \
        return real ? (struct fold_number){.real = (real_result)}                           \
                    : (struct fold_number){.whole = (int64_t)(whole_result)};               \
    }

/* A function that gives a truth value. */
#define TEST(name, whole_result, real_result)                                               \
    static struct fold_number name(const struct fold_number *in, bool real, uint32_t dtype) \
    {                                                                                       \
        (void)dtype;                                                                        \
        return (struct fold_number){.whole = real ? (real_result) : (whole_result)};        \
    }

#define A    (in[0])
#define B    (in[1])
#define U(x) ((uint64_t)(x).whole)

/* Only u64 has numbers that i64 lacks. */
static bool less(int64_t a, int64_t b, uint32_t dtype)
{
    return dtype == FRIT_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static int64_t divide(int64_t a, int64_t b, uint32_t dtype)
{
    if (b == 0)
        return 0;
    if (dtype == FRIT_U64)
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_of(int64_t a, int64_t b, uint32_t dtype)
{
    int64_t r;

    if (b == 0)
        return 0;
    if (dtype == FRIT_U64)
        return (int64_t)((uint64_t)a % (uint64_t)b);
    r = b == -1 ? 0 : a % b;
    return r && (r < 0) != (b < 0) ? r + b : r;
}

static double real_max(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static double real_min(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

MAP(map_abs, less(A.whole, 0, dtype) ? 0 - U(A) : U(A), fabs(A.real))
MAP(map_neg, 0 - U(A), -A.real)
MAP(map_sign, less(0, A.whole, dtype) - less(A.whole, 0, dtype),
    isnan(A.real) ? A.real : (A.real > 0) - (A.real < 0))
MAP(map_exp, 0, exp(A.real))
MAP(map_log, 0, log(A.real))
MAP(map_sqrt, 0, sqrt(A.real))
MAP(map_floor, A.whole, floor(A.real))
MAP(map_ceil, A.whole, ceil(A.real))
MAP(map_round, A.whole, nearbyint(A.real))
MAP(map_trunc, A.whole, trunc(A.real))
MAP(map_recip, 0, 1 / A.real)
MAP(map_relu, less(0, A.whole, dtype) ? A.whole : 0, real_max(A.real, 0))
MAP(map_add, U(A) + U(B), A.real + B.real)
MAP(map_sub, U(A) - U(B), A.real - B.real)
MAP(map_mul, U(A) * U(B), A.real *B.real)
MAP(map_div, divide(A.whole, B.whole, dtype), A.real / B.real)
MAP(map_rem, remainder_of(A.whole, B.whole, dtype), A.real - floor(A.real / B.real) * B.real)
MAP(map_max, less(B.whole, A.whole, dtype) ? A.whole : B.whole, real_max(A.real, B.real))
MAP(map_min, less(A.whole, B.whole, dtype) ? A.whole : B.whole, real_min(A.real, B.real))
MAP(map_and, A.whole &B.whole, 0)
MAP(map_or, A.whole | B.whole, 0)
MAP(map_xor, A.whole ^ B.whole, 0)
MAP(map_where, A.whole ? B.whole : in[2].whole, A.whole ? B.real : in[2].real)
TEST(map_eq, A.whole == B.whole, A.real == B.real)
TEST(map_ne, A.whole != B.whole, A.real != B.real)
TEST(map_lt, less(A.whole, B.whole, dtype), A.real < B.real)
TEST(map_le, !less(B.whole, A.whole, dtype), A.real <= B.real)
TEST(map_gt, less(B.whole, A.whole, dtype), A.real > B.real)
TEST(map_ge, !less(A.whole, B.whole, dtype), A.real >= B.real)

static struct fold_number map_not(const struct fold_number *in, bool real, uint32_t dtype)
{
    (void)real;
    return (struct fold_number){.whole = dtype == FRIT_BOOL ? !A.whole : ~A.whole};
}

static const struct {
    uint32_t op;
    fold_map *map;
} maps[] = {
    {FRIT_OP_abs, map_abs},     {FRIT_OP_neg, map_neg},     {FRIT_OP_sign, map_sign},
    {FRIT_OP_exp, map_exp},     {FRIT_OP_log, map_log},     {FRIT_OP_sqrt, map_sqrt},
    {FRIT_OP_floor, map_floor}, {FRIT_OP_ceil, map_ceil},   {FRIT_OP_round, map_round},
    {FRIT_OP_trunc, map_trunc}, {FRIT_OP_recip, map_recip}, {FRIT_OP_not, map_not},
    {FRIT_OP_add, map_add},     {FRIT_OP_relu, map_relu},   {FRIT_OP_sub, map_sub},
    {FRIT_OP_mul, map_mul},     {FRIT_OP_div, map_div},     {FRIT_OP_rem, map_rem},
    {FRIT_OP_maximum, map_max}, {FRIT_OP_minimum, map_min}, {FRIT_OP_and, map_and},
    {FRIT_OP_or, map_or},       {FRIT_OP_xor, map_xor},     {FRIT_OP_eq, map_eq},
    {FRIT_OP_ne, map_ne},       {FRIT_OP_lt, map_lt},       {FRIT_OP_le, map_le},
    {FRIT_OP_gt, map_gt},       {FRIT_OP_ge, map_ge},       {FRIT_OP_where, map_where},
};

fold_map *fold_math(uint32_t op)
{
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        if (maps[i].op == op)
            return maps[i].map;
    }
    return NULL;
}
