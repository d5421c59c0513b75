/* SPDX-License-Identifier: Apache-2.0 */
/* Every function for F32 and F64, with fma and without, against MPFR: what is special in all
 * combinations, and samples of the rest.  With FRIT_TEST_LONG in the environment many more, and the
 * worst of each function is said. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "ir/eval.h"
#include "ir/target.h"
#include "kernels/ir/rig.h"
#include "kernels/math/oracle.h"
#include "math/math.h"

enum { LANES = 256, GROUPS = 8, BATCH = LANES * GROUPS };

struct batch {
    bool wide;
    double x[BATCH], y[BATCH], got[BATCH];
    float narrow[3][BATCH];
};

static bool is_long(void)
{
    return getenv("FRIT_TEST_LONG") != NULL;
}

/* What code differs by. */
struct variant {
    bool wide, fma, scale;
};

static const struct variant variants[] = {
    {false, false, false}, {false, true, false}, {false, true, true},
    {true, false, false},  {true, true, false},
};

enum { VARIANTS = sizeof(variants) / sizeof(*variants) };

static struct kir_target target_of(const struct variant *v)
{
    return (struct kir_target){.lanes = LANES,
                               .fma = v->fma,
                               .scale = v->scale,
                               .f64 = true,
                               .i64 = true,
                               .exact_div = true,
                               .denormals = true};
}

/* out[i] = f(x[i], y[i]) */
static void make(struct kir_module *m, const struct function *f, const struct variant *v)
{
    struct kir_target target = target_of(v);
    uint32_t dtype = v->wide ? FRIT_F64 : FRIT_F32, type = v->wide ? KIR_F64 : KIR_F32;
    uint32_t group, at, x, y;

    kir_init(m, f->name);
    kir_arg(m, dtype, KIR_READ);
    kir_arg(m, dtype, KIR_READ);
    kir_arg(m, dtype, KIR_WRITE);
    kir_phase(m, LANES);
    group = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    at = OP2(m, add, OP2(m, mul, group, rig_int(m, LANES)), OP0(m, lane));
    x = rig_load(m, type, 0, at);
    y = rig_load(m, type, 1, at);
    rig_store(m, 2, at, f->one ? f->one(m, &target, x) : f->two(m, &target, x, y));
}

static void run(const struct kir_module *m, struct batch *b)
{
    struct eval_arg wide[] = {RIG_ARRAY(b->x), RIG_ARRAY(b->y), RIG_ARRAY(b->got)};
    struct eval_arg narrow[] = {RIG_ARRAY(b->narrow[0]), RIG_ARRAY(b->narrow[1]),
                                RIG_ARRAY(b->narrow[2])};

    for (int i = 0; i < BATCH; i++) {
        b->narrow[0][i] = (float)b->x[i];
        b->narrow[1][i] = (float)b->y[i];
    }
    rig_run(m, NULL, b->wide ? wide : narrow, GROUPS);
    for (int i = 0; i < BATCH && !b->wide; i++) {
        b->x[i] = b->narrow[0][i];
        b->y[i] = b->narrow[1][i];
        b->got[i] = b->narrow[2][i];
    }
}

/* ---- samples ---- */

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* From -1 to 1. */
static double random_unit(uint64_t *state)
{
    return (double)(int64_t)random_bits(state) * 0x1p-63;
}

/* Any number of the type. */
static double random_any(bool wide, uint64_t *state)
{
    uint64_t bits = random_bits(state);
    uint32_t low = (uint32_t)bits;
    double value;
    float narrow;

    memcpy(&value, &bits, sizeof(value));
    memcpy(&narrow, &low, sizeof(narrow));
    return wide ? value : (double)narrow;
}

static double random_x(bool wide, uint64_t *state)
{
    uint64_t how = random_bits(state);
    int power = (int)(how >> 8 & 31);

    switch (how & 7) {
    case 0:
    case 1:
        return random_any(wide, state);
    case 2:
        return random_unit(state) * (wide ? 750 : 110);
    case 3:
        return 1 + ldexp(random_unit(state), -power);
    case 4:
        return ldexp(random_unit(state), -power);
    default:
        return ldexp(random_unit(state), (int)(how >> 8 & 7) - 2);
    }
}

/* Near x in size, or an exponent that brings x to the edges of the type. */
static double random_y(bool wide, double x, uint64_t *state)
{
    uint64_t how = random_bits(state);
    double log = log2(fabs(x));

    if ((how & 3) == 0)
        return random_any(wide, state);
    if ((how & 3) == 1)
        return x * ldexp(1 + random_unit(state), (int)(how >> 8 & 63) - 32);
    if (!isnormal(log))
        return random_unit(state);
    return (how & 3) == 2 ? rint(random_unit(state) * 10)
                          : random_unit(state) * (wide ? 1080 : 155) / log;
}

static double worst_of(uint32_t f, const struct batch *b, double worst)
{
    double error;

    for (int i = 0; i < BATCH; i++) {
        error = oracle_error(f, b->wide, b->x[i], b->y[i], b->got[i]);
        if (error > 3)
            fail_msg("%s %s of %a, %a is %a: %g ulp", functions[f].name, b->wide ? "F64" : "F32",
                     b->x[i], b->y[i], b->got[i], error);
        worst = error > worst ? error : worst;
    }
    return worst;
}

static uint32_t count_work(const struct kir_module *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->phases[0].n; i++)
        n += m->phases[0].inst[i].op != KIR_const && m->phases[0].inst[i].op != KIR_bits;
    return n - 7; /* lane, group, mul, add, two loads, store */
}

/* 2 ulp; gelu below 0 multiplies more factors, each rounded. */
static void sample(uint32_t f, const struct variant *v, long batches)
{
    static struct batch batch;
    double worst = 0, limit = strcmp(functions[f].name, "gelu") == 0 ? 3 : 2;
    uint64_t state = f;
    struct kir_module m;

    batch.wide = v->wide;
    make(&m, &functions[f], v);
    for (long n = 0; n < batches; n++) {
        for (int i = 0; i < BATCH; i++) {
            batch.x[i] = random_x(v->wide, &state);
            batch.y[i] = random_y(v->wide, batch.x[i], &state);
        }
        run(&m, &batch);
        worst = worst_of(f, &batch, worst);
    }
    if (is_long())
        print_message("%-12s %s %-6s %.2f ulp %u\n", functions[f].name, v->wide ? "F64" : "F32",
                      v->scale ? "scale"
                      : v->fma ? "fma"
                               : "no fma",
                      worst, count_work(&m));
    assert_true(worst <= limit);
    kir_fini(&m);
}

static void test_samples(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < ORACLE_FUNCTIONS; f++)
        for (int i = 0; i < VARIANTS; i++)
            sample(f, &variants[i], is_long() ? 300 : 1);
}

/* ---- special values ---- */

static const double special[] = {
    0,         1,        2,         3,          0.5,       0.25,       1.5,      10,
    100,       INFINITY, 0x1p-149,  0x1p-126,   0x1p-130,  0x1p24,     0x1p-30,  0x1.fffffep127,
    0x1p-1074, 0x1p1023, 0x1p-1022, 0x1.fffp15, 0x1p-1040, 0x1.8p1000, 0x1p63,   -INFINITY,
    -0.0,      -1,       -2,        -3,         -0.5,      -0x1p-149,  -0x1p127, NAN,
};

static void test_special(void **state)
{
    static struct batch batch;
    enum { N = sizeof(special) / sizeof(special[0]) };
    struct kir_module m;

    (void)state;
    assert_true(N * N <= BATCH);
    for (int i = 0; i < BATCH; i++) {
        batch.x[i] = special[i % N];
        batch.y[i] = special[i / N % N];
    }
    for (uint32_t f = 0; f < ORACLE_FUNCTIONS; f++)
        for (int i = 0; i < VARIANTS; i++) {
            struct batch b = batch;

            b.wide = variants[i].wide;
            make(&m, &functions[f], &variants[i]);
            run(&m, &b);
            worst_of(f, &b, 0);
            kir_fini(&m);
        }
}

/* Angles next to multiples of pi / 2, where a reduction with too few bits shows: the nearest ones
 * of each type, and large ones. */
static void test_angles(void **state)
{
    static struct batch batch;
    static const double angles[] = {0x1.6ac5b262ca1ffp+849, 0x1.921fb54442d18p+0,  0x1.921fb6p+0,
                                    0x1.921fb54442d18p+1,   0x1.921fb54442d18p+20, 0x1.fffffep127,
                                    0x1.f9cbe2p+7,          0x1.3001f4p+74,        0x1p100};
    enum { N = sizeof(angles) / sizeof(angles[0]) };
    struct kir_module m;

    (void)state;
    for (uint32_t f = 0; f < ORACLE_FUNCTIONS; f++)
        for (int k = 0; k < VARIANTS; k++) {
            if (strcmp(functions[f].name, "sin") != 0 && strcmp(functions[f].name, "cos") != 0 &&
                strcmp(functions[f].name, "tan") != 0)
                continue;
            batch.wide = variants[k].wide;
            for (int i = 0; i < BATCH; i++)
                batch.x[i] = angles[i % N] * (i / N % 2 ? -1 : 1);
            make(&m, &functions[f], &variants[k]);
            run(&m, &batch);
            assert_true(worst_of(f, &batch, 0) <= 2);
            kir_fini(&m);
        }
}

static void test_no_memory(void **state)
{
    struct kir_module m;

    (void)state;
    for (uint32_t f = 0; f < ORACLE_FUNCTIONS; f++)
        for (long n = 0, hit = 1; hit; n++) {
            failing_alloc_arm(n);
            make(&m, &functions[f], &variants[3]);
            hit = failing_alloc_disarm();
            assert_int_equal(m.failed, hit);
            kir_fini(&m);
        }
}

static int setup(void **state)
{
    (void)state;
    oracle_init();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    oracle_fini();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_angles),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
