/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of two values for NaN, which are one comparison where both are of one type, give what two
 * give; so do comparisons that are no such tests. */
#include <math.h>

#include "kernels/emit/llvm/rig.h"
#include "unit.h"

enum { LANES = 64, PLACES = 4 };

/* What is compared with what on both sides of `or`. */
static const struct nan_case {
    uint32_t dtypes[2]; /* of the values a and b */
    bool same[2];       /* a with a, b with b; else with the other one */
} cases[] = {
    {{FRIT_F32, FRIT_F32}, {true, true}},  {{FRIT_F64, FRIT_F64}, {true, true}},
    {{FRIT_F32, FRIT_F64}, {true, true}},  {{FRIT_F32, FRIT_F32}, {true, false}},
    {{FRIT_F32, FRIT_F32}, {false, true}},
};

static uint32_t differs(struct kir_module *m, uint32_t value, uint32_t other, bool same)
{
    return kir_emit(m, KIR_ne, value, same ? value : other, KIR_NONE);
}

/* out[lane] = either comparison is true. */
static void make(struct kir_module *m, const struct nan_case *c)
{
    uint32_t lane, values[2], either;

    kir_init(m, "nan");
    for (int i = 0; i < 2; i++)
        kir_arg(m, c->dtypes[i], KIR_READ);
    kir_arg(m, FRIT_I32, KIR_WRITE);
    kir_phase(m, LANES);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    for (uint32_t i = 0; i < 2; i++)
        values[i] =
            kir_emit_as(m, KIR_load, kir_type_of(c->dtypes[i]), i, lane, KIR_NONE, KIR_NONE);
    either = kir_emit(m, KIR_or, differs(m, values[0], values[1], c->same[0]),
                      differs(m, values[1], values[0], c->same[1]), KIR_NONE);
    either = kir_select(m, either, kir_const_i(m, KIR_I32, 1), kir_const_i(m, KIR_I32, 0));
    kir_emit_imm(m, KIR_store, 2, lane, either, KIR_NONE);
}

struct nan_data {
    double wide[2][LANES];
    float narrow[2][LANES];
    int32_t out[LANES];
};

/* All pairs of a few values. */
static void fill(struct nan_data *d)
{
    static const float values[PLACES] = {1, NAN, INFINITY, -0.0f};

    for (int i = 0; i < LANES; i++) {
        d->narrow[0][i] = values[i % PLACES];
        d->narrow[1][i] = values[i / PLACES % PLACES];
        d->wide[0][i] = (double)d->narrow[0][i];
        d->wide[1][i] = (double)d->narrow[1][i];
        d->out[i] = -1;
    }
}

static void check(const struct rig *rig, const struct nan_case *c, enum llvm_isa isa)
{
    struct object *object;
    struct kir_module m;
    struct nan_data d;
    void *args[3];

    make(&m, c);
    fill(&d);
    for (int i = 0; i < 2; i++)
        args[i] = c->dtypes[i] == FRIT_F32 ? (void *)d.narrow[i] : (void *)d.wide[i];
    args[2] = d.out;
    object = rig_compile(rig, &m, &(struct llvm_cpu){.isa = isa}, LLVM_GOOD);
    rig_run(object, 0, (const uint32_t[3]){1, 1, 1}, NULL, args, false);
    for (int i = 0; i < LANES; i++) {
        double a = d.wide[0][i], b = d.wide[1][i];
        bool want = (c->same[0] ? isnan(a) : a != b) || (c->same[1] ? isnan(b) : b != a);

        assert_int_equal(d.out[i], want);
    }
    object_unload(object);
    kir_fini(&m);
}

static void tests_for_nan_give_what_two_give(void **state)
{
    const struct rig *rig = rig_of(state);

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t isa = 0; isa <= rig->best.isa; isa++)
            check(rig, &cases[i], (enum llvm_isa)isa);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tests_for_nan_give_what_two_give)};

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
