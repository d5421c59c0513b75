/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that train: all have the same bits, and learn what one device learns from the joined
 * batch.  FRIT_TEST_DEVICE: only with this device, and 77 if there is none. */
#include "dist/model.h"

#include <frit/plugin.h>

enum { ROWS_A_STEP = 12 };

struct run {
    const char *name;
    const char *devices[MOST_MEMBERS];
    uint32_t n_devices, size, steps;
    uint32_t optimizer; /* FRIT_SGD, FRIT_ADAM */
    uint64_t bucket_bytes;
    uint32_t parts; /* of a rank's rows, whose gradients are accumulated */
    bool is_exact;  /* also bit for bit what one device learns that computes the ranks' parts */
};

struct trainee {
    const struct run *run;
    uint32_t parts;
    float weights[MODEL_FLOATS];
};

static bool train(struct member *m, struct model *model)
{
    struct trainee *t = m->ctx;
    const uint32_t n = ROWS_A_STEP / m->size;
    const frit_optimizer_config config =
        t->run->optimizer == FRIT_SGD ? frit_sgd_config(0.25) : frit_adam_config(0.01);
    const frit_replica_config replica = {.struct_size = sizeof(replica),
                                         .bucket_bytes = t->run->bucket_bytes,
                                         .first_bucket_bytes = t->run->bucket_bytes};

    if (m->size > 1)
        MUST(m, frit_replica_create(m->group, &replica, model->params, N_PARAMS, &model->replica,
                                    &m->err));
    MUST(m, frit_optimizer_create(&config, model->params, N_PARAMS, &model->optimizer, &m->err));
    for (uint32_t i = 0; i < t->run->steps; i++) {
        if (!model_step(model, i * ROWS_A_STEP + m->rank * n, n, t->parts))
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

static void train_on(const struct run *run, uint32_t size, uint32_t parts,
                     float (*weights)[MODEL_FLOATS])
{
    struct member members[MOST_MEMBERS] = {0};
    struct trainee trainees[MOST_MEMBERS];
    struct stage stage;

    stage_open(&stage, run->devices, run->n_devices);
    for (uint32_t r = 0; r < size; r++) {
        trainees[r] = (struct trainee){.run = run, .parts = parts};
        members[r].ctx = &trainees[r];
    }
    stage_run(&stage, size, members, run_trainee);
    for (uint32_t r = 0; r < size; r++)
        memcpy(weights[r], trainees[r].weights, sizeof(trainees[r].weights));
    stage_close(&stage);
}

static void check(const struct run *run)
{
    float alone[1][MODEL_FLOATS], parts[1][MODEL_FLOATS], together[MOST_MEMBERS][MODEL_FLOATS];

    print_message("%s\n", run->name);
    train_on(run, run->size, run->parts, together);
    expect_equal_models((const float(*)[MODEL_FLOATS])together, run->size);
    train_on(run, 1, 1, alone);
    expect_near_model(together[0], alone[0], 1e-6);
    if (!run->is_exact)
        return;
    train_on(run, 1, run->size, parts);
    expect_near_model(together[0], parts[0], 0);
}

static const struct run runs[] = {
    {"two on cpu, SGD", {"cpu:0"}, 1, 2, 100, FRIT_SGD, 0, 1, true},
    {"two on cpu, Adam, a bucket for each parameter", {"cpu:0"}, 1, 2, 100, FRIT_ADAM, 1, 1, true},
    {"two on reference, SGD", {"reference:0"}, 1, 2, 20, FRIT_SGD, 64, 1, true},
    {"two that accumulate", {"cpu:0"}, 1, 2, 100, FRIT_SGD, 64, 3, false},
    {"three on two devices, Adam", {"cpu:0", "reference:0"}, 2, 3, 20, FRIT_ADAM, 128, 1, false},
};

static void test_replicas_learn_as_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
        check(&runs[i]);
}

static void test_on_the_given_device(void **state)
{
    const char *name = getenv("FRIT_TEST_DEVICE");
    const struct run alike = {"two alike", {name}, 1, 2, 5, FRIT_SGD, 64, 1, true};
    const struct run mixed = {"mixed", {"cpu:0", name}, 2, 2, 5, FRIT_ADAM, 0, 2, false};

    (void)state;
    check(&alike);
    check(&mixed);
}

/* ---- what steps cost ---- */

enum { MANY = FRIT_SANITIZER == FRIT_SANITIZER_NONE ? 500 : 150, WARM = 100 };

struct steady {
    uint32_t steps;
    frit_stats before, after; /* of the device, which no other rank has */
};

/* A bucket for each parameter: one operation each, and no gradient is copied. */
static bool run_many(struct member *m, struct model *model)
{
    const frit_replica_config replica = {
        .struct_size = sizeof(replica), .bucket_bytes = 1, .first_bucket_bytes = 1};
    const frit_optimizer_config config = frit_adam_config(0.01);
    struct steady *s = m->ctx;

    MUST(m, frit_replica_create(m->group, &replica, model->params, N_PARAMS, &model->replica,
                                &m->err));
    MUST(m, frit_optimizer_create(&config, model->params, N_PARAMS, &model->optimizer, &m->err));
    for (uint32_t i = 1; i <= s->steps; i++) {
        if (!model_step(model, i * ROWS_A_STEP + m->rank * 6, 6, 1))
            return false;
        if (i != WARM && i != s->steps)
            continue;
        MUST(m, frit_optimizer_sync(model->optimizer, model->params, &m->err));
        stats_at_rest(m->device, i == WARM ? &s->before : &s->after);
    }
    return true;
}

static bool run_steady(struct member *m)
{
    struct model model;
    bool good;

    model_init(&model, m, FRIT_F32, 1);
    good = run_many(m, &model);
    model_fini(&model);
    return good;
}

static void test_steps_cost_no_memory_and_no_copies(void **state)
{
    static const char *const devices[] = {"cpu:0", "reference:0"};
    const uint32_t steps = getenv("FRIT_TEST_LONG") ? 20 * MANY : MANY;
    struct steady steady[2] = {{.steps = steps}, {.steps = steps}};
    struct member members[2] = {{.ctx = &steady[0]}, {.ctx = &steady[1]}};
    struct stage stage;

    (void)state;
    stage_open(&stage, devices, 2);
    stage_run(&stage, 2, members, run_steady);
    for (int r = 0; r < 2; r++) {
        const frit_stats *before = &steady[r].before, *after = &steady[r].after;

        assert_int_equal(after->buffers_now, before->buffers_now);
        assert_int_equal(after->tensors_now, before->tensors_now);
        assert_int_equal(after->bytes_now, before->bytes_now);
        assert_in_range(after->bytes_peak, before->bytes_peak, 2 * before->bytes_peak);
        assert_int_equal(after->reserved_peak, before->reserved_peak);
        assert_int_equal(after->plans_now, before->plans_now);
        assert_int_equal(after->collectives - before->collectives, N_PARAMS * (steps - WARM));
        assert_int_equal(after->bytes_coalesced, before->bytes_coalesced);
    }
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas_learn_as_one),
        cmocka_unit_test(test_steps_cost_no_memory_and_no_copies),
    };
    const struct CMUnitTest given[] = {cmocka_unit_test(test_on_the_given_device)};
    const char *name = getenv("FRIT_TEST_DEVICE");

    if (name && !stage_has(name))
        return 77;
    return name ? cmocka_run_group_tests(given, NULL, NULL)
                : cmocka_run_group_tests(tests, NULL, NULL);
}
