/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks with different numbers of batches: those that have none take part until nobody has one, and
 * means are over those that had one. */
#include "dist/model.h"

enum { EPOCHS = 2, RANKS = 3 };

/* Rows of the batches of each rank in an epoch, 0: there is none.  Rank r begins at row 20 * r. */
static const uint32_t batches[RANKS][4] = {{5, 0}, {5, 5, 1, 0}, {5, 2, 0}};

struct learner {
    uint32_t flags;
    bool by_shadow; /* else by join */
    float weights[MODEL_FLOATS];
};

static bool make(struct member *m, struct model *model)
{
    const struct learner *l = m->ctx;
    const frit_replica_config replica = {.struct_size = sizeof(replica),
                                         .first_bucket_bytes = 64,
                                         .bucket_bytes = 64,
                                         .flags = FRIT_REPLICA_UNEVEN | l->flags};
    const frit_optimizer_config config =
        l->by_shadow ? frit_adam_config(0.01) : frit_sgd_config(0.125);

    model_init(model, m, FRIT_F32, 3);
    if (m->size > 1)
        MUST(m, frit_replica_create(m->group, &replica, model->params, N_PARAMS, &model->replica,
                                    &m->err));
    MUST(m, frit_optimizer_create(&config, model->params, N_PARAMS, &model->optimizer, &m->err));
    return true;
}

/* The steps of others, as long as there are any. */
static bool shadow(struct member *m, struct model *model)
{
    frit_tensor *grads[N_PARAMS];
    uint32_t n_present;

    for (;;) {
        MUST(m, frit_replica_shadow(model->replica, grads, &n_present, &m->err));
        if (!n_present)
            break;
        MUST(m, frit_optimizer_step(model->optimizer, model->params, grads, &m->err));
        for (int i = 0; i < N_PARAMS; i++)
            frit_release(grads[i]);
    }
    CHECK(m, !grads[0]);
    return true;
}

static bool run_epochs(struct member *m, struct model *model)
{
    struct learner *l = m->ctx;

    for (int e = 0; e < EPOCHS; e++) {
        for (int i = 0; batches[m->rank][i]; i++) {
            if (!model_step(model, 20 * m->rank + 5 * (uint32_t)i, batches[m->rank][i], 1))
                return false;
        }
        if (l->by_shadow && !shadow(m, model))
            return false;
        if (!l->by_shadow)
            MUST(m, frit_replica_join(model->replica, model->params, &m->err));
    }
    return model_read(model, l->weights);
}

static bool learn(struct member *m)
{
    struct model model = {0};
    const bool good = make(m, &model) && run_epochs(m, &model);

    model_fini(&model);
    return good;
}

/* ---- what one device makes of it ---- */

static bool step_alone(struct member *m, struct model *model, int i)
{
    const struct learner *l = m->ctx;
    frit_tensor *losses[RANKS], *shares[RANKS];
    uint32_t n = 0;

    CHECK(m, model_watch(model));
    for (uint32_t r = 0; r < RANKS; r++) {
        const bool ended = i >= 1 && !batches[r][i - 1];

        if (ended || !batches[r][i])
            continue;
        losses[n++] = model_loss(model, 20 * r + 5 * (uint32_t)i, batches[r][i]);
    }
    for (uint32_t k = 0; k < n; k++)
        shares[k] = frit_full(m->device, FRIT_F32, FRIT_RANK0,
                              l->flags & FRIT_REPLICA_SUM ? 1 : (double)(1.0f / (float)n));
    MUST(m, frit_grad_backward_many(losses, shares, n, 0, &m->err));
    MUST(m, frit_optimizer_step(model->optimizer, model->params, NULL, &m->err));
    return true;
}

static bool learn_alone(struct member *m)
{
    struct learner *l = m->ctx;
    struct model model = {0};
    bool good = make(m, &model);

    for (int i = 0; i < 3 * EPOCHS && good; i++) {
        const frit_scope scope = frit_scope_begin(m->device);

        good = step_alone(m, &model, i % 3);
        frit_grad_end(m->device);
        frit_scope_end(scope);
    }
    good = good && model_read(&model, l->weights);
    model_fini(&model);
    return good;
}

static void check(uint32_t flags, bool by_shadow, double most)
{
    static const char *const devices[] = {"reference:0"};
    struct learner learners[RANKS], alone = {.flags = flags, .by_shadow = by_shadow};
    struct member members[RANKS] = {0}, one = {.ctx = &alone};
    struct stage stage;

    stage_open(&stage, devices, 1);
    for (int r = 0; r < RANKS; r++) {
        learners[r] = alone;
        members[r].ctx = &learners[r];
    }
    stage_run(&stage, RANKS, members, learn);
    stage_run(&stage, 1, &one, learn_alone);
    for (int r = 0; r < RANKS; r++) {
        if (memcmp(learners[r].weights, learners[0].weights, sizeof(alone.weights)) != 0)
            fail_msg("rank %d has other bits", r);
    }
    expect_near_model(learners[0].weights, alone.weights, most);
    stage_close(&stage);
}

static void test_joining(void **state)
{
    (void)state;
    check(0, false, 1e-6);
    check(FRIT_REPLICA_SUM, false, 1e-6);
}

static void test_shadows_have_the_states_of_the_optimiser(void **state)
{
    (void)state;
    check(0, true, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joining),
        cmocka_unit_test(test_shadows_have_the_states_of_the_optimiser),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
