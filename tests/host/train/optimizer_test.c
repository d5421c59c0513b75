/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers against PyTorch's over 20 steps. */
#include "api/rig.h"
#include "train/values.h"

#include "train/expected.h"

enum { STEPS = 20, N_FIRST = 6, N_SECOND = 2, N_ALL = N_FIRST + N_SECOND };

/* ---- one case ---- */

struct optimizer_case {
    const char *name;
    frit_optimizer_config config;
    const double *values; /* [STEPS][N_ALL] */
    const double *scales; /* with a scaler; NULL: without */
};

#define SGD   .struct_size = sizeof(frit_optimizer_config), .kind = FRIT_SGD, .rate = 0.1
#define ADAM  .struct_size = sizeof(frit_optimizer_config), .kind = FRIT_ADAM, .rate = 0.02
#define ADAMW .struct_size = sizeof(frit_optimizer_config), .kind = FRIT_ADAMW, .rate = 0.02
#define BETAS .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8

static const struct optimizer_case cases[] = {
    {"sgd", {SGD}, expected_sgd, NULL},
    {"sgd_decay", {SGD, .weight_decay = 0.05}, expected_sgd_decay, NULL},
    {"momentum", {SGD, .momentum = 0.9, .dampening = 0.25}, expected_momentum, NULL},
    {"nesterov",
     {SGD, .momentum = 0.9, .weight_decay = 0.05, .flags = FRIT_OPTIMIZER_NESTEROV},
     expected_nesterov,
     NULL},
    {"adam", {ADAM, BETAS}, expected_adam, NULL},
    {"adam_decay",
     {ADAM, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1},
     expected_adam_decay,
     NULL},
    {"adamw", {ADAMW, BETAS, .weight_decay = 0.1}, expected_adamw, NULL},
    {"amsgrad",
     {ADAMW, .beta1 = 0.5, .beta2 = 0.6, .eps = 1e-8, .weight_decay = 0.01,
      .flags = FRIT_OPTIMIZER_AMSGRAD},
     expected_amsgrad,
     NULL},
    {"clip_value", {SGD, .momentum = 0.9, .clip_value = 0.25}, expected_clip_value, NULL},
    {"clip_norm", {SGD, .momentum = 0.9, .clip_norm = 0.5}, expected_clip_norm, NULL},
    {"scaled_sgd",
     {SGD, .momentum = 0.9, .dampening = 0.25},
     expected_scaled_sgd,
     expected_scaled_sgd_scale},
    {"scaled_adam",
     {ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-3, .weight_decay = 0.01, .clip_norm = 0.5},
     expected_scaled_adam,
     expected_scaled_adam_scale},
};

/* ---- a run of it ---- */

struct run {
    struct rig rig;
    struct optimizer_case c;
    uint32_t dtype;
    frit_scaler *scaler;
    frit_optimizer *optimizer;
    frit_tensor *params[2];
};

static void run_begin(struct run *run, const struct optimizer_case *c, uint32_t dtype,
                      uint32_t flags)
{
    *run = (struct run){.c = *c, .dtype = dtype};
    rig_open(&run->rig, NULL, 0);
    run->params[0] = tensor_of(run->rig.dev, dtype, FRIT_SHAPE(2, 3), 1, 8);
    run->params[1] = tensor_of(run->rig.dev, dtype, FRIT_SHAPE(2), 2, 8);
    if (c->scales) {
        const frit_scaler_config config = {
            .struct_size = sizeof(config), .scale = 1024, .interval = 4};

        OK(frit_scaler_create(run->rig.dev, &config, &run->scaler, err));
    }
    run->c.config.scaler = run->scaler;
    run->c.config.flags |= flags;
    OK(frit_optimizer_create(&run->c.config, run->params, 2, &run->optimizer, err));
}

static void run_end(struct run *run)
{
    frit_optimizer_destroy(run->optimizer);
    frit_scaler_destroy(run->scaler);
    frit_release(run->params[0]);
    frit_release(run->params[1]);
    rig_close(&run->rig);
}

static bool is_spoiled(int step)
{
    return step == 1 || step == 6 || step == 7 || step == 15;
}

static frit_tensor *gradient(struct run *run, frit_dims dims, int seed, int step)
{
    frit_tensor *grad = tensor_of(run->rig.dev, run->dtype, dims, seed, 8);
    float spoil[N_SECOND] = {0, step % 2 ? INFINITY : NAN};

    if (!run->scaler)
        return grad;
    grad = frit_cast(frit_scaler_scale(run->scaler, grad), run->dtype);
    if (dims.rank == 1 && is_spoiled(step))
        grad = frit_add(grad, frit_cast(rig_f32(&run->rig, dims, spoil), run->dtype));
    return grad;
}

static void run_step(struct run *run, int step)
{
    const frit_scope scope = frit_scope_begin(run->rig.dev);
    frit_tensor *const grads[] = {gradient(run, FRIT_SHAPE(2, 3), step, step),
                                  gradient(run, FRIT_SHAPE(2), step + 5, step)};

    if (step == 11)
        frit_optimizer_set_rate(run->optimizer, frit_optimizer_rate(run->optimizer) / 2);
    OK(frit_optimizer_step(run->optimizer, run->params, grads, err));
    if (run->scaler)
        OK(frit_scaler_update(run->scaler, err));
    frit_scope_end(scope);
}

static void expect_step(struct run *run, int step, double tolerance)
{
    const double *want = &run->c.values[(step - 1) * N_ALL];
    char what[64];

    snprintf(what, sizeof(what), "%s, step %d", run->c.name, step);
    expect_doubles(what, run->params[0], want, tolerance);
    expect_doubles(what, run->params[1], want + N_FIRST, tolerance);
    if (run->scaler) {
        frit_state_desc scale = {.struct_size = sizeof(scale)};

        assert_int_equal(frit_scaler_state_at(run->scaler, 0, &scale), FRIT_OK);
        assert_string_equal(scale.name, "scale");
        expect_doubles(what, scale.tensor, &run->c.scales[step - 1], 0);
    }
}

static void run_case(const struct optimizer_case *c, uint32_t dtype, uint32_t flags,
                     double tolerance)
{
    struct run run;

    run_begin(&run, c, dtype, flags);
    for (int step = 1; step <= STEPS; step++) {
        run_step(&run, step);
        expect_step(&run, step, tolerance);
    }
    run_end(&run);
}

static void run_all(uint32_t dtype, uint32_t flags, double tolerance)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_case(&cases[i], dtype, flags, tolerance);
}

static void test_f32(void **state)
{
    (void)state;
    run_all(FRIT_F32, 0, 3e-6);
}

static void test_f64(void **state)
{
    (void)state;
    run_all(FRIT_F64, 0, 3e-6);
}

static void test_in_place(void **state)
{
    (void)state;
    run_all(FRIT_F32, FRIT_OPTIMIZER_IN_PLACE, 3e-6);
}

/* Masters are as exact as f32; parameters are their nearest f16. */
static void test_16_bits(void **state)
{
    (void)state;
    run_all(FRIT_F16, 0, 5e-4);
    run_all(FRIT_BF16, 0, 4e-3);
}

/* ---- the comparison sees small mistakes ---- */

static bool differs(const struct optimizer_case *c)
{
    double have[MOST] = {0};
    bool seen = false;
    struct run run;

    run_begin(&run, c, FRIT_F32, 0);
    for (int step = 1; step <= STEPS; step++) {
        const double *want = &run.c.values[(step - 1) * N_ALL];

        run_step(&run, step);
        seen |= first_difference(run.params[0], want, 3e-6, have) >= 0;
        seen |= first_difference(run.params[1], want + N_FIRST, 3e-6, have) >= 0;
    }
    run_end(&run);
    return seen;
}

static void test_wrong_numbers_are_seen(void **state)
{
    static const struct {
        size_t offset;
        double factor;
    } plants[] = {
        {offsetof(frit_optimizer_config, rate), 1.001},
        {offsetof(frit_optimizer_config, weight_decay), 1.01},
        {offsetof(frit_optimizer_config, momentum), 1.001},
        {offsetof(frit_optimizer_config, dampening), 1.01},
        {offsetof(frit_optimizer_config, beta1), 1.001},
        {offsetof(frit_optimizer_config, beta2), 0.999},
        {offsetof(frit_optimizer_config, eps), 1e5},
        {offsetof(frit_optimizer_config, clip_value), 1.01},
        {offsetof(frit_optimizer_config, clip_norm), 1.5},
    };
    bool is_seen[sizeof(plants) / sizeof(plants[0])] = {false};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t k = 0; k < sizeof(plants) / sizeof(plants[0]); k++) {
            struct optimizer_case c = cases[i];
            double *number = (double *)((char *)&c.config + plants[k].offset);

            /* Adam divides what clip_norm multiplies with. */
            if (*number == 0 || (number == &c.config.clip_norm && c.config.kind != FRIT_SGD))
                continue;
            *number *= plants[k].factor;
            if (!differs(&c))
                fail_msg("%s: number %d is not seen", c.name, (int)k);
            is_seen[k] = true;
        }
    }
    for (size_t k = 0; k < sizeof(plants) / sizeof(plants[0]); k++)
        assert_true(is_seen[k]);
}

static void test_wrong_flags_are_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct optimizer_case c = cases[i];

        if (!c.config.flags)
            continue;
        c.config.flags = 0;
        assert_true(differs(&c));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),
        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_16_bits),
        cmocka_unit_test(test_wrong_numbers_are_seen),
        cmocka_unit_test(test_wrong_flags_are_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
