/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of replicas: each ends on all ranks with a text that says who, in which step and bucket;
 * parameters are those of before the step; survivors go on in a new group. */
#include "dist/model.h"

#include <stdio.h>
#include <time.h>

enum { RANKS = 3 };

static void run_ranks(uint32_t size, bool (*body)(struct member *m), struct member *members)
{
    static const char *const devices[] = {"reference:0"};
    struct stage stage;

    stage_open(&stage, devices, 1);
    stage_run(&stage, size, members, body);
    stage_close(&stage);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Buckets: "head.w" and "head.b", then "hidden.b", then "hidden.w". */
static bool make(struct member *m, struct model *model, uint32_t flags)
{
    const frit_replica_config config = {.struct_size = sizeof(config),
                                        .bucket_bytes = 108,
                                        .first_bucket_bytes = 108,
                                        .flags = flags,
                                        .names = model_names};
    const frit_optimizer_config adam = frit_adam_config(0.01);

    model_init(model, m, FRIT_F32, 3);
    MUST(m,
         frit_replica_create(m->group, &config, model->params, N_PARAMS, &model->replica, &m->err));
    MUST(m, frit_optimizer_create(&adam, model->params, N_PARAMS, &model->optimizer, &m->err));
    return true;
}

/* ---- a rank leaves ---- */

static bool leave(struct member *m, struct model *model)
{
    frit_replica_destroy(model->replica);
    model->replica = NULL;
    MUST(m, frit_group_leave(m->group, &m->err));
    m->group = NULL;
    return true;
}

/* Step 2 fails when it runs; what is called later fails at once. */
static bool fail_and_undo(struct member *m, struct model *model)
{
    float before[MODEL_FLOATS], after[MODEL_FLOATS];
    const uint64_t steps = frit_optimizer_steps(model->optimizer);
    double begun;
    char text[64];

    CHECK(m, model_read(model, before));
    CHECK(m, model_step(model, 20 * m->rank + 10, 5, 1));
    begun = seconds();
    snprintf(text, sizeof(text), "group dp, rank %u of 3", m->rank);
    MUST_FAIL(m, frit_optimizer_sync(model->optimizer, model->params, &m->err), FRIT_PEER_LOST,
              "rank 1 has left the group");
    CHECK(m,
          strstr(m->err.text, text) &&
              strstr(m->err.text, "step 2, bucket 1 of 3 (108 bytes f32, 'head.b' to 'head.w')"));
    CHECK(m, model_read(model, after));
    CHECK(m, memcmp(before, after, sizeof(before)) == 0);
    CHECK(m, frit_optimizer_steps(model->optimizer) == steps);
    CHECK(m, model_watch(model));
    MUST_FAIL(
        m, frit_replica_backward(model->replica, model->params, NULL, FRIT_REPLICA_SYNC, &m->err),
        FRIT_PEER_LOST, "the group has ended");
    frit_grad_end(m->device);
    CHECK(m, seconds() - begun < 5);
    return true;
}

struct survivor {
    const frit_group_id *id; /* of the new group */
    float weights[MODEL_FLOATS];
};

static bool go_on(struct member *m, struct model *model)
{
    struct survivor *s = m->ctx;
    frit_group_config config = m->config;

    config.id = s->id;
    config.rank = m->rank != 0;
    config.size = 2;
    config.name = "dp2";
    CHECK(m, leave(m, model));
    MUST(m, frit_group_join(m->device, &config, &m->group, &m->err));
    MUST(m, frit_replica_create(m->group, NULL, model->params, N_PARAMS, &model->replica, &m->err));
    for (uint32_t i = 0; i < 4; i++)
        CHECK(m, model_step(model, 20 * m->rank + 5 * i, 5, 1));
    MUST(m, frit_optimizer_sync(model->optimizer, model->params, &m->err));
    return model_read(model, s->weights);
}

static bool run_survivor(struct member *m)
{
    struct model model = {0};
    bool good = make(m, &model, 0) && model_step(&model, 20 * m->rank, 5, 1) &&
                (!frit_sync(m->device, &m->err) || member_fail(m, "%s", m->err.text));

    if (m->rank == 1)
        good = good && leave(m, &model);
    else
        good = good && fail_and_undo(m, &model) && go_on(m, &model);
    model_fini(&model);
    return good;
}

static void test_survivors_go_on(void **state)
{
    static const char *const devices[] = {"reference:0"};
    struct survivor survivors[RANKS];
    struct member members[RANKS] = {0};
    struct stage stage;
    frit_group_id id;

    (void)state;
    stage_open(&stage, devices, 1);
    assert_int_equal(frit_group_id_create(stage.host, "collective-local", &id, NULL), FRIT_OK);
    for (int r = 0; r < RANKS; r++) {
        survivors[r].id = &id;
        members[r].ctx = &survivors[r];
    }
    stage_run(&stage, RANKS, members, run_survivor);
    assert_memory_equal(survivors[0].weights, survivors[2].weights, sizeof(survivors[0].weights));
    stage_close(&stage);
}

/* ---- modes that differ ---- */

static bool pass(struct model *model, uint32_t mode)
{
    struct member *m = model->member;

    MUST(m, frit_replica_backward(model->replica, model->params, model_loss(model, 0, 5), mode,
                                  &m->err));
    return true;
}

/* In the second step rank 1 makes a pass before it that the others do not make. */
static bool differ(struct member *m, struct model *model)
{
    const frit_scope scope = frit_scope_begin(m->device);

    CHECK(m, model_watch(model));
    if (m->rank == 1)
        CHECK(m, pass(model, FRIT_REPLICA_ACCUMULATE));
    CHECK(m, pass(model, FRIT_REPLICA_SYNC));
    MUST(m, frit_optimizer_step(model->optimizer, model->params, NULL, &m->err));
    frit_grad_end(m->device);
    frit_scope_end(scope);
    MUST_FAIL(m, frit_optimizer_sync(model->optimizer, model->params, &m->err), FRIT_MISMATCH,
              "(step 2) on rank 0");
    CHECK(m, strstr(m->err.text, "(step 2 after 1 pass) on rank 1"));
    return true;
}

static bool run_modes(struct member *m)
{
    struct model model = {0};
    const bool good = make(m, &model, 0) && model_step(&model, 0, 5, 1) && differ(m, &model);

    model_fini(&model);
    return good;
}

static void test_modes_that_differ(void **state)
{
    struct member members[2] = {0};

    (void)state;
    run_ranks(2, run_modes, members);
}

/* ---- gradients that are missing ---- */

static bool run_unused(struct member *m, struct model *model)
{
    const frit_scope scope = frit_scope_begin(m->device);
    frit_tensor *loss;

    CHECK(m, model_watch(model));
    loss =
        m->rank ? frit_sum(frit_mul(model->params[0], model->params[0])) : model_loss(model, 0, 5);
    if (m->rank == 1) {
        MUST_FAIL(
            m,
            frit_replica_backward(model->replica, model->params, loss, FRIT_REPLICA_SYNC, &m->err),
            FRIT_INVALID, "parameter 'head.b' has no gradient on rank 1");
        CHECK(m, strstr(m->err.text, "step 1"));
    } else {
        MUST(m, frit_replica_backward(model->replica, model->params, loss, FRIT_REPLICA_SYNC,
                                      &m->err));
    }
    frit_grad_end(m->device);
    frit_scope_end(scope);
    if (m->rank == 0) {
        (void)frit_sync(m->device, &m->err);
        CHECK(m, model_watch(model));
        MUST_FAIL(
            m,
            frit_replica_backward(model->replica, model->params, NULL, FRIT_REPLICA_SYNC, &m->err),
            FRIT_ABORTED, "parameter 'head.b' has no gradient on rank 1");
        frit_grad_end(m->device);
    }
    return true;
}

static bool unused(struct member *m)
{
    struct model model = {0};
    const bool good = make(m, &model, FRIT_REPLICA_ALL_USED) && run_unused(m, &model);

    model_fini(&model);
    return good;
}

static void test_a_gradient_that_is_missing(void **state)
{
    struct member members[2] = {0};

    (void)state;
    run_ranks(2, unused, members);
}

/* ---- a loss that has failed ---- */

static bool fail_loss(struct member *m, struct model *model)
{
    const frit_scope scope = frit_scope_begin(m->device);
    frit_tensor *loss;

    CHECK(m, model_watch(model));
    loss =
        m->rank ? frit_sum(frit_add(model->params[0], model->params[3])) : model_loss(model, 0, 5);
    if (m->rank)
        MUST_FAIL(
            m,
            frit_replica_backward(model->replica, model->params, loss, FRIT_REPLICA_SYNC, &m->err),
            FRIT_INVALID, "replica_backward: step 1: grad_backward: ");
    else
        MUST(m, frit_replica_backward(model->replica, model->params, loss, FRIT_REPLICA_SYNC,
                                      &m->err));
    frit_grad_end(m->device);
    frit_scope_end(scope);
    if (m->rank == 0)
        MUST_FAIL(m, frit_sync(m->device, &m->err), FRIT_ABORTED, "grad_backward: ");
    return true;
}

static bool failed(struct member *m)
{
    struct model model = {0};
    const bool good = make(m, &model, 0) && fail_loss(m, &model);

    (void)frit_sync(m->device, NULL);
    model_fini(&model);
    return good;
}

static void test_a_loss_that_has_failed(void **state)
{
    struct member members[2] = {0};

    (void)state;
    run_ranks(2, failed, members);
}

/* ---- nobody reads, somebody aborts ---- */

static bool unread(struct member *m, struct model *model)
{
    const frit_scope scope = frit_scope_begin(m->device);
    float grad[CLASSES];

    CHECK(m, model_watch(model));
    CHECK(m, pass(model, FRIT_REPLICA_SYNC));
    if (m->rank == 0)
        MUST(m, frit_read(frit_grad_of(model->params[3]), grad, sizeof(grad), &m->err));
    frit_grad_end(m->device);
    frit_scope_end(scope);
    return true;
}

static bool run_unread(struct member *m)
{
    struct model model = {0};
    const bool good = make(m, &model, 0) && unread(m, &model);

    model_fini(&model);
    return good;
}

static void test_gradients_that_one_rank_does_not_read(void **state)
{
    struct member members[2] = {0};

    (void)state;
    run_ranks(2, run_unread, members);
}

/* Rank 1 ends the group while rank 0 waits for its part of the step. */
static bool abort_group(struct member *m, struct model *model)
{
    double begun;

    if (m->rank == 1) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        MUST(m, frit_group_abort(m->group, "enough"));
        return true;
    }
    begun = seconds();
    CHECK(m, model_step(model, 0, 5, 1));
    MUST_FAIL(m, frit_optimizer_sync(model->optimizer, model->params, &m->err), FRIT_ABORTED,
              "enough");
    CHECK(m, seconds() - begun < 5);
    return true;
}

static bool run_abort(struct member *m)
{
    struct model model = {0};
    const bool good = make(m, &model, 0) && abort_group(m, &model);

    model_fini(&model);
    return good;
}

static void test_an_abort_wakes_who_waits(void **state)
{
    struct member members[2] = {0};

    (void)state;
    run_ranks(2, run_abort, members);
}

/* ---- two groups ---- */

/* Each rank is in two groups of its stream, and the ranks use them in opposite order.  The second
 * one's limit passes; then the first one's step is made. */
static bool two_groups(struct member *m, struct model *a, struct model *b)
{
    struct model *const order[] = {m->rank ? a : b, m->rank ? b : a};
    struct member *second = b->member;

    for (int i = 0; i < 2; i++) {
        if (!model_step(order[i], 0, 5, 1))
            return member_fail(m, "%s", second->failed);
    }
    if (m->rank == 0)
        MUST_FAIL(m, frit_optimizer_sync(b->optimizer, b->params, &m->err), FRIT_TIMEOUT,
                  "group second, rank 0 of 2");
    else
        MUST_FAIL(m, frit_optimizer_sync(b->optimizer, b->params, &m->err), FRIT_ABORTED,
                  "group second, rank 0 of 2");
    CHECK(m,
          strstr(m->err.text, "step 1, bucket 1 of 3") && strstr(m->err.text, "waits for rank 1"));
    return true;
}

static bool run_two_groups(struct member *m)
{
    frit_group_config config = m->config;
    struct model a = {0}, b = {0};
    struct member second = *m;
    bool good;

    config.id = m->ctx;
    config.number = 7;
    config.name = "second";
    config.op_ns = 300000000;
    MUST(m, frit_group_join(m->device, &config, &second.group, &m->err));
    good = make(m, &a, 0) && (make(&second, &b, 0) || member_fail(m, "%s", second.failed)) &&
           two_groups(m, &a, &b);
    (void)frit_sync(m->device, NULL);
    model_fini(&a);
    model_fini(&b);
    (void)frit_group_leave(second.group, NULL);
    return good;
}

static void test_two_groups_in_opposite_order(void **state)
{
    static const char *const devices[] = {"reference:0"};
    struct member members[2] = {0};
    struct stage stage;
    frit_group_id id;

    (void)state;
    stage_open(&stage, devices, 1);
    assert_int_equal(frit_group_id_create(stage.host, "collective-local", &id, NULL), FRIT_OK);
    members[0].ctx = members[1].ctx = &id;
    stage_run(&stage, 2, members, run_two_groups);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survivors_go_on),
        cmocka_unit_test(test_modes_that_differ),
        cmocka_unit_test(test_a_gradient_that_is_missing),
        cmocka_unit_test(test_a_loss_that_has_failed),
        cmocka_unit_test(test_gradients_that_one_rank_does_not_read),
        cmocka_unit_test(test_an_abort_wakes_who_waits),
        cmocka_unit_test(test_two_groups_in_opposite_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
