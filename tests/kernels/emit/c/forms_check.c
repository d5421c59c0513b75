/* SPDX-License-Identifier: Apache-2.0 */
/* The program that forms_test builds: forms.h has the functions of the dialects. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ir/half.h"
#include "kernels/bits.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

enum { SAMPLES = 1000000, STEP_32 = 1021, SHOWN = 10 };

static u64 random_bits(void)
{
    static u64 state;
    u64 x = state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* ---- instructions ---- */

/* One ulp off. */
static f32 rough_sqrt(f32 x)
{
    f32 root = sqrtf(x);

    return root > 0 && root < INFINITY
               ? f32_of_bits(bits_of_f32(root) + (u32)(random_bits() % 3) - 1)
               : root;
}

/* Half of the bits. */
static f64 rough_rsq(f64 x)
{
    f64 off = (f64)(int64_t)random_bits() * 0x1p-63;

    return 1 / sqrt(x) * (1 + off * 0x1p-24);
}

#define __builtin_amdgcn_sqrtf(x) rough_sqrt(x)
#define __builtin_amdgcn_rsq(x)   rough_rsq(x)
#define DEVICE                    static inline
#if defined(__FLT16_MAX__) && !defined(__clang__) /* 14 has it on some processors only */
#define HAS_FLOAT16
#define __builtin_bit_cast(type, from)     \
    __extension__({                        \
        __typeof__(from) from_ = (from);   \
        type to_;                          \
        memcpy(&to_, &from_, sizeof(to_)); \
        to_;                               \
    })
#endif

#include "forms.h"

/* ---- checks ---- */

static int failures;

static void check(const char *name, f64 a, f64 b, f64 got, f64 expected)
{
    if (bits_of_f64(got) == bits_of_f64(expected) || (isnan(got) && isnan(expected)))
        return;
    if (failures++ < SHOWN)
        printf("%s of %a, %a is %a, should be %a\n", name, a, b, got, expected);
}

/* Doubles hold every product of an F32 with what is left of the power. */
static f32 scaled(f32 a, f32 b)
{
    return isnan(b) ? b : (f32)ldexp((f64)a, (int)fminf(fmaxf(b, -400), 400));
}

static void check_scale(f32 a, f32 b)
{
    check("scale for CUDA", (f64)a, (f64)b, (f64)scale_f32_cuda(a, b), (f64)scaled(a, b));
    check("scale for HIP", (f64)a, (f64)b, (f64)scale_f32_hip(a, b), (f64)scaled(a, b));
}

static void check_scales(void)
{
    for (u32 i = 0; i < 3 * SAMPLES; i++)
        check_scale(f32_of_bits((u32)random_bits()), (f32)(random_bits() % 801) - 400);
    for (int b = -1000; b <= 1000; b++) {
        check_scale(1, (f32)b);
        check_scale(-0x1.fffffep127f, (f32)b);
        check_scale(0x1p-149f, (f32)b);
        check_scale(-0.0f, (f32)b);
        check_scale(INFINITY, (f32)b);
        check_scale(NAN, (f32)b);
    }
    check_scale(1, NAN);
    check_scale(INFINITY, NAN);
    check_scale(3, 0x1.fffffep127f);
    check_scale(3, -0x1.fffffep127f);
}

static void check_f32(void)
{
    for (u64 i = 0; i <= UINT32_MAX; i += STEP_32) {
        f32 a = f32_of_bits((u32)i);

        check("rint", (f64)a, 0, (f64)rint_f32_cuda(a), (f64)rintf(a));
        check("F32 sqrt", (f64)a, 0, (f64)sqrt_f32_hip(a), (f64)sqrtf(a));
    }
    for (f32 a = -70000; a < 70000; a += 0.25f)
        check("rint", (f64)a, 0, (f64)rint_f32_cuda(a), (f64)rintf(a));
}

#ifdef HAS_FLOAT16
static void check_halves(uint32_t fraction)
{
    for (u32 i = 0; i <= UINT16_MAX; i++)
        check("load", i, fraction, (f64)half_load_hip((u16)i, fraction),
              (f64)half_load((u16)i, fraction));
    for (u64 i = 0; i <= UINT32_MAX; i += STEP_32) {
        f32 a = f32_of_bits((u32)i);

        check("store", (f64)a, fraction, (f64)half_load(half_store_hip(a, fraction), fraction),
              (f64)half_load(half_store(a, fraction), fraction));
    }
}
#endif

static void check_f64(void)
{
    static const f64 special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -1, 0x1p-1074, 0x1p-1022};

    for (u32 i = 0; i < sizeof(special) / sizeof(*special); i++)
        check("F64 sqrt", special[i], 0, sqrt_f64_hip(special[i]), sqrt(special[i]));
    for (u32 i = 0; i < 2 * SAMPLES; i++) {
        f64 a = f64_of_bits(random_bits() >> 1), root = (f64)(random_bits() >> 40);

        check("F64 sqrt", a, 0, sqrt_f64_hip(a), sqrt(a));
        check("F64 sqrt", root * root, 0, sqrt_f64_hip(root * root), root);
    }
}

int main(void)
{
    check_scales();
    check_f32();
    check_f64();
#ifdef HAS_FLOAT16
    check_halves(10);
    check_halves(7);
#endif
    return failures ? 1 : 0;
}
