/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that train: all have the same bits after each step, and learn what one device learns
 * from the joined batch. */
#include "dist/model.h"

enum { STEPS = 100, ROWS_A_STEP = 12 };

struct run {
    const char *name;
    const char *devices[MOST_MEMBERS];
    uint32_t n_devices, size, steps;
    uint32_t optimizer; /* FRIT_SGD, FRIT_ADAM */
    frit_replica_config config;
};

struct trainee {
    const struct run *run;
    float weights[MODEL_FLOATS];
};

static bool train(struct member *m, struct model *model)
{
    struct trainee *t = m->ctx;
    const uint32_t n = ROWS_A_STEP / m->size;
    const frit_optimizer_config config =
        t->run->optimizer == FRIT_SGD ? frit_sgd_config(0.25) : frit_adam_config(0.01);

    if (m->size > 1)
        MUST(m, frit_replica_create(m->group, &t->run->config, model->params, N_PARAMS,
                                    &model->replica, &m->err));
    MUST(m, frit_optimizer_create(&config, model->params, N_PARAMS, &model->optimizer, &m->err));
    for (uint32_t i = 0; i < t->run->steps; i++) {
        if (!model_step(model, i * ROWS_A_STEP + m->rank * n, n))
            return false;
    }
    MUST(m, frit_optimizer_sync(model->optimizer, model->params, &m->err));
    return model_read(model, t->weights);
}

/* Ranks begin with different parameters, which become those of rank 0. */
static bool run_trainee(struct member *m)
{
    struct model model;
    bool good;

    model_init(&model, m, FRIT_F32, 1 + (int)m->rank);
    good = train(m, &model);
    model_fini(&model);
    return good;
}

static void train_on(const struct run *run, uint32_t size, float (*weights)[MODEL_FLOATS])
{
    struct member members[MOST_MEMBERS] = {0};
    struct trainee trainees[MOST_MEMBERS];
    struct stage stage;

    stage_open(&stage, run->devices, run->n_devices);
    for (uint32_t r = 0; r < size; r++) {
        trainees[r] = (struct trainee){.run = run};
        members[r].ctx = &trainees[r];
    }
    stage_run(&stage, size, members, run_trainee);
    for (uint32_t r = 0; r < size; r++)
        memcpy(weights[r], trainees[r].weights, sizeof(trainees[r].weights));
    stage_close(&stage);
}

static void check(const struct run *run)
{
    float alone[1][MODEL_FLOATS], together[MOST_MEMBERS][MODEL_FLOATS];

    train_on(run, 1, alone);
    train_on(run, run->size, together);
    expect_equal_models((const float(*)[MODEL_FLOATS])together, run->size);
    expect_near_model(together[0], alone[0], 1e-6);
}

static const struct run runs[] = {
    {"two on cpu", {"cpu:0"}, 1, 2, STEPS, FRIT_SGD, {.struct_size = sizeof(frit_replica_config)}},
};

static void test_replicas_learn_as_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        print_message("%s\n", runs[i].name);
        check(&runs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replicas_learn_as_one)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
