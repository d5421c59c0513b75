/* SPDX-License-Identifier: Apache-2.0 */
/* Many numbers by one divisor are the quotients that the machine's division gives: of the pairs
 * whose quotients are next to ties (see divide.c), and of what lies out of its bounds.  With
 * FRIT_TEST_LONG=1 all significands of divisors are taken. */
#include <math.h>
#include <string.h>

#include "kernels/emit/llvm/rig.h"
#include "unit.h"

enum { LANES = 64, GROUPS = 4096, LEAST = 1 << 23, NEAR = 8 /* to a tie */, MAX_LOW = 3 };

/* out[group][lane] = a[group][lane] / b[group]. */
static void make_quotients(struct kir_module *m)
{
    uint32_t lane, group, at, a, b;

    kir_init(m, "quotients");
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_WRITE);
    kir_phase(m, LANES);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    group = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    at = kir_emit(m, KIR_mul, group, kir_const_i(m, KIR_I32, LANES), KIR_NONE);
    at = kir_emit(m, KIR_add, at, lane, KIR_NONE);
    a = kir_emit_as(m, KIR_load, KIR_F32, 0, at, KIR_NONE, KIR_NONE);
    b = kir_emit_as(m, KIR_load, KIR_F32, 1, group, KIR_NONE, KIR_NONE);
    kir_emit_imm(m, KIR_store, 2, at, kir_emit(m, KIR_div, a, b, KIR_NONE), KIR_NONE);
}

struct quotients {
    struct object *object[LLVM_ISAS][2]; /* by slow_div */
    int n_isas;
    float a[GROUPS][LANES], b[GROUPS], out[GROUPS][LANES];
};

static int same(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static void run(struct quotients *q)
{
    for (int isa = 0; isa < 2 * q->n_isas; isa++) {
        memset(q->out, 0xff, sizeof(q->out));
        rig_run(q->object[isa / 2][isa % 2], 0, (const uint32_t[3]){GROUPS, 1, 1}, NULL,
                (void *[]){q->a, q->b, q->out}, false);
        for (uint32_t g = 0; g < GROUPS; g++) {
            for (uint32_t i = 0; i < LANES; i++)
                if (!same(q->out[g][i], q->a[g][i] / q->b[g]))
                    fail_msg("set %d, slow %d: %a / %a gives %a, not %a", isa / 2, isa % 2,
                             (double)q->a[g][i], (double)q->b[g], (double)q->out[g][i],
                             (double)(q->a[g][i] / q->b[g]));
        }
    }
}

/* x with x b = 1 modulo 2^32, b odd. */
static uint32_t inverse(uint32_t b)
{
    uint32_t x = b;

    for (int i = 0; i < 5; i++)
        x *= 2 - b * x;
    return x;
}

/* Significands A with A 2^k = M b + r for an odd M of 25 bits; gives how many. */
static uint32_t near_ties(uint32_t b, uint32_t k, int r, float *a)
{
    uint32_t low = (uint32_t)__builtin_ctz(b), n = 0;
    uint64_t step = 1ull << (k - low), m;

    if (low > MAX_LOW || r == 0 || r & ((1 << low) - 1))
        return 0;
    m = (uint32_t)(-(r >> low)) * inverse(b >> low) & (step - 1);
    for (; m < 4 * LEAST; m += step) {
        int64_t whole = (int64_t)(m * b) + r;

        if (m >= 2 * LEAST && m & 1 && whole >> k >= LEAST && whole >> k < 2 * LEAST)
            a[n++] = (float)(whole >> k);
    }
    return n;
}

static uint32_t all_near_ties(uint32_t b, float *a)
{
    uint32_t n = 0;

    for (uint32_t k = 24; k <= 25; k++)
        for (int r = -NEAR; r <= NEAR; r++)
            n += near_ties(b, k, r, a + n);
    return n;
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed;
}

static struct quotients *quotients_of(const struct rig *rig)
{
    struct quotients *q = malloc(sizeof(*q));
    struct kir_module m;

    assert_non_null(q);
    make_quotients(&m);
    q->n_isas = (int)rig->best.isa + 1;
    for (int isa = 0; isa < 2 * q->n_isas; isa++)
        q->object[isa / 2][isa % 2] = rig_compile(
            rig, &m, &(struct llvm_cpu){(enum llvm_isa)(isa / 2), isa % 2, false}, LLVM_QUICK);
    kir_fini(&m);
    return q;
}

static void quotients_free(struct quotients *q)
{
    for (int isa = 0; isa < 2 * q->n_isas; isa++)
        object_unload(q->object[isa / 2][isa % 2]);
    free(q);
}

/* Scaled up to the ends of the bounds. */
static void quotients_next_to_ties_are_rounded(void **state)
{
    struct quotients *q = quotients_of(rig_of(state));
    uint32_t step = getenv("FRIT_TEST_LONG") ? 1 : 509, seed = 1, g = 0, cases = 0;

    for (uint32_t b = LEAST; b < 2 * LEAST; b += step) {
        uint32_t n = all_near_ties(b, q->a[g]);
        int by = (int)(next(&seed) >> 16) % 63 - 31;

        cases += n;
        q->b[g] = ldexpf((float)b, by - 23) * (seed >> 31 ? -1.0f : 1.0f);
        for (uint32_t i = n; i < LANES; i++)
            q->a[g][i] = (float)(LEAST + next(&seed) % LEAST);
        by = (int)(next(&seed) >> 16) % 127 - 63;
        for (uint32_t i = 0; i < LANES; i++)
            q->a[g][i] = ldexpf(q->a[g][i], by - 23) * (next(&seed) >> 31 ? -1.0f : 1.0f);
        if (++g < GROUPS && b + step < 2 * LEAST)
            continue;
        run(q);
        g = 0;
    }
    assert_true(cases > 5 * LEAST / step);
    quotients_free(q);
}

/* Any bits, all exponents within the bounds, one exponent; and a group in eight with a divisor or a
 * number that is none, 0 or at an end. */
static void quotients_of_anything_are_rounded(void **state)
{
    static const float odd[] = {0,   -0.0f,     INFINITY,   -INFINITY,
                                NAN, 0x1p-149f, -0x1p-126f, 0x1.8p127f};
    struct quotients *q = quotients_of(rig_of(state));
    uint32_t seed = 2;

    for (int round = 0; round < 8; round++) {
        for (uint32_t g = 0; g < GROUPS; g++) {
            q->b[g] = ldexpf(1 + (float)(next(&seed) >> 9) * 0x1p-23f, (int)(seed % 250) - 125);
            for (uint32_t i = 0; i < LANES; i++) {
                uint32_t bits = next(&seed) ^ next(&seed) >> 16;

                memcpy(&q->a[g][i], &bits, sizeof(bits));
                if (g % 4)
                    q->a[g][i] = ldexpf(1 + (float)(bits >> 9) * 0x1p-23f,
                                        g % 2 ? 0 : (int)(bits % 127) - 63);
            }
            if (g % 8 == 1)
                q->b[g] = odd[g / 8 % 8];
            if (g % 8 == 3)
                q->a[g][next(&seed) % LANES] = odd[g / 8 % 8];
        }
        run(q);
    }
    quotients_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotients_next_to_ties_are_rounded),
        cmocka_unit_test(quotients_of_anything_are_rounded),
    };

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
