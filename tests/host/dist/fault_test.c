/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a replica's life fails once: a call reports it, or the gradients are right;
 * and nothing is left over. */
#include "dist/model.h"

#include <math.h>

#include "failing_alloc.h"

struct life {
    struct model model;
    float grads[2][CLASSES]; /* of a pass, and of a step of shadows */
};

static frit_status watch(struct model *model)
{
    struct member *m = model->member;
    frit_status st = frit_grad_begin(m->device, &m->err);

    for (int i = 0; i < N_PARAMS && !st; i++)
        st = frit_grad_watch(model->params[i], &m->err);
    return st;
}

static frit_status pass(struct life *life)
{
    struct model *model = &life->model;
    struct member *m = model->member;
    const frit_scope scope = frit_scope_begin(m->device);
    frit_status st = watch(model);
    frit_tensor *grad = NULL;

    if (!st)
        st = frit_replica_backward(model->replica, model->params, model_loss(model, 0, 5),
                                   FRIT_REPLICA_SYNC, &m->err);
    if (!st)
        grad = frit_grad_of(model->params[3]);
    if (grad)
        st = frit_read(grad, life->grads[0], sizeof(life->grads[0]), &m->err);
    if (grad && frit_tensor_status(grad) == FRIT_NO_HOST_MEMORY && st)
        frit_release(grad);
    frit_grad_end(m->device);
    frit_scope_end(scope);
    return st;
}

static frit_status live(struct life *life)
{
    const frit_replica_config config = {.struct_size = sizeof(config),
                                        .bucket_bytes = 64,
                                        .first_bucket_bytes = 64,
                                        .flags = FRIT_REPLICA_UNEVEN,
                                        .names = model_names};
    struct model *model = &life->model;
    struct member *m = model->member;
    frit_tensor *grads[N_PARAMS] = {NULL};
    uint32_t n_present;
    frit_status st =
        frit_replica_create(m->group, &config, model->params, N_PARAMS, &model->replica, &m->err);

    if (!st)
        st = pass(life);
    if (!st)
        st = frit_replica_reduce(model->replica, grads, &m->err);
    if (!st)
        st = frit_read(grads[3], life->grads[1], sizeof(life->grads[1]), &m->err);
    for (int i = 0; i < N_PARAMS; i++)
        frit_release(grads[i]);
    if (!st)
        st = frit_replica_shadow(model->replica, grads, &n_present, &m->err);
    return st;
}

static bool check_life(struct member *m, const struct life *good)
{
    struct life life = {.grads = {{0}}};
    frit_status st;

    model_init(&life.model, m, FRIT_F32, 3);
    for (int i = 0; i < N_PARAMS; i++)
        CHECK(m, frit_tensor_status(life.model.params[i]) == FRIT_OK);
    failing_alloc_arm(*(const long *)m->ctx);
    st = live(&life);
    *(long *)m->ctx = failing_alloc_disarm() ? *(const long *)m->ctx + 1 : -1;
    if (st && st != FRIT_NO_HOST_MEMORY)
        member_fail(m, "%d: %s", st, m->err.text);
    if (!st && memcmp(life.grads, good->grads, sizeof(life.grads)) != 0)
        member_fail(m, "other gradients");
    (void)frit_sync(m->device, NULL);
    model_fini(&life.model);
    return !*m->failed;
}

static bool right(struct member *m)
{
    struct life *life = m->ctx;
    bool good;

    model_init(&life->model, m, FRIT_F32, 3);
    good = !live(life) || member_fail(m, "%s", m->err.text);
    model_fini(&life->model);
    return good;
}

static struct life good_life;

static bool run_life(struct member *m)
{
    return check_life(m, &good_life);
}

static void test_each_allocation_fails_once(void **state)
{
    static const char *const devices[] = {"reference:0"};
    struct member one = {.ctx = &good_life};
    struct stage stage;
    long n = 0;

    (void)state;
    stage_open(&stage, devices, 1);
    stage_run(&stage, 1, &one, right);
    assert_true(fabsf(good_life.grads[0][0]) > 0 && good_life.grads[1][0] == 0);
    while (n >= 0) {
        struct member member = {.ctx = &n};

        stage_run(&stage, 1, &member, run_life);
    }
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
