/* SPDX-License-Identifier: Apache-2.0 */
/* Training of networks with attention and convolutions by several optimisers, among hundreds of
 * small unrelated tensors that are made and released between the ops of each step, as programs do:
 * losses fall, near those of reference:0, and the other tensors have the bits of plain loops.
 *
 * Arguments: the name of the only test; `_staging`: of vulkan, without pointers to memory. */
#include "device/models.h"

#include <math.h>
#include <string.h>

enum { STEPS = 6, CROWD = 320, ELEMENTS = 16, BORN = 40, READ_EVERY = 13 };

static bool staging;

/* ---- the crowd ---- */

/* Small vectors of few sizes, and what they have to be. */
struct crowd {
    frit_device *device;
    uint64_t state;
    frit_tensor *tensor[CROWD];
    int64_t size[CROWD];
    float expected[CROWD][ELEMENTS];
};

static uint32_t below(struct crowd *c, uint32_t n)
{
    c->state = c->state * 6364136223846793005u + 1442695040888963407u; /* MMIX's */
    return (uint32_t)(c->state >> 33) % n;
}

static void crowd_open(struct crowd *c, frit_device *device)
{
    *c = (struct crowd){.device = device, .state = 5};
    for (uint32_t i = 0; i < CROWD; i++) {
        c->size[i] = 1 + i % ELEMENTS;
        for (int64_t k = 0; k < c->size[i]; k++)
            c->expected[i][k] = (float)below(c, 1024) / 64;
        c->tensor[i] = frit_from_host(device, FRIT_F32, FRIT_SHAPE(c->size[i]), c->expected[i],
                                      (uint64_t)c->size[i] * sizeof(float));
    }
}

static void check_one(struct crowd *c, uint32_t i)
{
    float got[ELEMENTS];
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_read(c->tensor[i], got, (uint64_t)c->size[i] * sizeof(float), &err))
        fail_msg("%s", err.text);
    if (memcmp(got, c->expected[i], (uint64_t)c->size[i] * sizeof(float)) != 0)
        fail_msg("small tensor %u of %lld elements is wrong: its first is %g, not %g", i,
                 (long long)c->size[i], (double)got[0], (double)c->expected[i][0]);
}

/* Number `i` becomes `tensor`, which is the caller's no more. */
static void become(struct crowd *c, uint32_t i, frit_tensor *tensor)
{
    frit_release(c->tensor[i]);
    c->tensor[i] = tensor;
}

/* `i` becomes the mean of itself and `with`. */
static void mix(struct crowd *c, uint32_t i, uint32_t with)
{
    frit_tensor *sum = frit_add(c->tensor[i], c->tensor[with]);

    become(c, i, frit_mul_f(sum, 0.5));
    frit_release(sum);
    for (int64_t k = 0; k < c->size[i]; k++)
        c->expected[i][k] = (c->expected[i][k] + c->expected[with][k]) * 0.5f;
}

/* `i` becomes `with` turned round, in the same memory. */
static void turn(struct crowd *c, uint32_t i, uint32_t with)
{
    float turned[ELEMENTS];

    become(c, i, frit_flip(c->tensor[with], .axes = FRIT_AXES(0)));
    for (int64_t k = 0; k < c->size[i]; k++)
        turned[k] = c->expected[with][c->size[i] - 1 - k];
    memcpy(c->expected[i], turned, sizeof(turned));
}

/* Some change by others of their size; few are read. */
static void crowd_step(struct crowd *c)
{
    for (int n = 0; n < BORN; n++) {
        const uint32_t i = below(c, CROWD), with = (i + ELEMENTS * below(c, 8)) % CROWD;

        if (c->size[i] != c->size[with])
            continue;
        if (below(c, 4) == 0)
            turn(c, i, with);
        else
            mix(c, i, with);
        if (n % READ_EVERY == 0)
            check_one(c, i);
    }
}

static void crowd_close(struct crowd *c)
{
    for (uint32_t i = 0; i < CROWD; i++) {
        check_one(c, i);
        frit_release(c->tensor[i]);
    }
}

/* ---- training ---- */

/* The losses of some steps. */
static void train(frit_device *device, const struct model_kind *kind, struct model_size size,
                  const frit_optimizer_config *config, bool is_crowded, float *losses)
{
    static struct crowd crowd;
    frit_tensor *kept[STEPS];
    struct model model;

    model_open(&model, device, kind, size, config);
    if (is_crowded)
        crowd_open(&crowd, device);
    for (int i = 0; i < STEPS; i++) { /* losses are read in the end: steps queue up */
        kept[i] = model_step(&model);
        if (is_crowded)
            crowd_step(&crowd);
    }
    for (int i = 0; i < STEPS; i++) {
        float *loss = rig_read(kept[i]);

        losses[i] = *loss;
        free(loss);
    }
    if (is_crowded)
        crowd_close(&crowd);
    model_close(&model);
}

static void check(const char *kind, struct model_size size, const char *how,
                  const frit_optimizer_config *config)
{
    const frit_setting settings[] = {{"frit", "poison", "yes"},
                                     {"plugin.vulkan", "option.staging", "force"}};
    frit_err err = {.struct_size = sizeof(err)};
    float losses[STEPS], wanted[STEPS];
    frit_device *reference;
    struct rig rig;

    rig_open_with(&rig, settings, staging ? 2 : 1);
    assert_int_equal(frit_device_open(rig.host, "reference:0", &reference, &err), FRIT_OK);
    train(rig.dev, model_kind_named(kind), size, config, true, losses);
    train(reference, model_kind_named(kind), size, config, false, wanted);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs((double)losses[i] - (double)wanted[i]) <= 1e-3 * (double)wanted[i]))
            fail_msg("%s by %s: loss %d is %.9g, on reference:0 %.9g", kind, how, i,
                     (double)losses[i], (double)wanted[i]);
    if (!(losses[STEPS - 1] < 0.9f * losses[0]))
        fail_msg("%s by %s: the loss went from %g to %g alone", kind, how, (double)losses[0],
                 (double)losses[STEPS - 1]);
    frit_device_close(reference);
    rig_close(&rig);
}

static void test_momentum(void **state)
{
    frit_optimizer_config config = frit_sgd_config(0.05);

    (void)state;
    config.momentum = 0.9;
    config.flags = FRIT_OPTIMIZER_NESTEROV;
    check("conv", (struct model_size){4, 11}, "momentum", &config);
    check("attention", (struct model_size){3, 13}, "momentum", &config);
}

static void test_adam(void **state)
{
    frit_optimizer_config config = frit_adam_config(1e-2);

    (void)state;
    config.flags = FRIT_OPTIMIZER_AMSGRAD;
    check("attention", (struct model_size){2, 21}, "Adam", &config);
}

static void test_adamw(void **state)
{
    frit_optimizer_config config = frit_adamw_config(1e-2);

    (void)state;
    config.clip_norm = 1;
    check("transformer", (struct model_size){2, 19}, "AdamW", &config);
    config.flags = FRIT_OPTIMIZER_IN_PLACE;
    check("conv", (struct model_size){3, 13}, "AdamW in place", &config);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_momentum),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_adamw),
    };

    if (rig_is_short())
        cmocka_set_test_filter("test_momentum");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "_staging") == 0)
            staging = true;
        else
            cmocka_set_test_filter(argv[i]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
