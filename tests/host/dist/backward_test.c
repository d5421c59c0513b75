/* SPDX-License-Identifier: Apache-2.0 */
/* Backward passes of replicas: every kind of network gives the mean of the ranks' gradients, with
 * one operation for each bucket; modes, and what is refused. */
#include "dist/model.h"
#include "dist/spy.h"

enum { WIDTH = 3, N_WEIGHTS = 3 };

/* ---- networks ---- */

/* A loss from three weights of WIDTH elements, the last of 1 element.  NULL: there is none. */
typedef frit_tensor *(*network_fn)(struct member *m, frit_tensor *const *w);

static frit_tensor *input(struct member *m)
{
    const float x[WIDTH] = {1 + (float)m->rank, -2, 0.5f};

    return frit_from_host(m->device, FRIT_F32, FRIT_SHAPE(WIDTH), x, sizeof(x));
}

static frit_tensor *shared(struct member *m, frit_tensor *const *w)
{
    frit_tensor *h = frit_mul(w[0], input(m));

    h = frit_add(frit_mul(w[0], h), w[1]);
    return frit_sum(frit_mul(frit_mul(w[0], h), w[2]));
}

static frit_tensor *residual(struct member *m, frit_tensor *const *w)
{
    frit_tensor *h = frit_mul(w[0], input(m));

    h = frit_add(h, frit_mul(w[1], frit_tanh(h)));
    return frit_sum(frit_mul(frit_add(h, frit_sin(h)), w[2]));
}

static frit_tensor *diamond(struct member *m, frit_tensor *const *w)
{
    frit_tensor *h = frit_mul(w[0], input(m));
    frit_tensor *left = frit_mul(h, w[1]), *right = frit_exp(h);

    return frit_sum(frit_mul(frit_mul(left, right), w[2]));
}

static frit_tensor *squares(struct member *m, frit_tensor *const *w)
{
    (void)m;
    return frit_sum(frit_add(frit_mul(w[0], w[0]), frit_mul(w[1], frit_mul(w[2], w[2]))));
}

static frit_tensor *itself(struct member *m, frit_tensor *const *w)
{
    (void)m;
    return w[2];
}

static frit_tensor *one_is_unused(struct member *m, frit_tensor *const *w)
{
    return frit_sum(frit_mul(w[0], input(m)));
}

/* Rank 0 uses the first weight, others the second. */
static frit_tensor *each_its_own(struct member *m, frit_tensor *const *w)
{
    return frit_sum(frit_mul(w[m->rank != 0], input(m)));
}

static frit_tensor *a_parent_is_dropped(struct member *m, frit_tensor *const *w)
{
    return frit_sum(frit_mul(w[0], frit_mul(frit_floor(w[1]), input(m))));
}

static frit_tensor *one_rank_has_none(struct member *m, frit_tensor *const *w)
{
    return m->rank ? NULL : shared(m, w);
}

static const struct {
    const char *name;
    network_fn loss;
} networks[] = {
    {"shared", shared},
    {"residual", residual},
    {"diamond", diamond},
    {"squares", squares},
    {"the loss itself", itself},
    {"one is unused", one_is_unused},
    {"each its own", each_its_own},
    {"a parent is dropped", a_parent_is_dropped},
    {"one rank has none", one_rank_has_none},
};
enum { N_NETWORKS = sizeof(networks) / sizeof(networks[0]), MOST_GRADS = 2 * WIDTH + 1 };

static void make_weights(struct member *m, frit_tensor *w[N_WEIGHTS])
{
    const float values[] = {0.5f, -1.25f, 2, 0.75f, 1.5f, -0.5f, 1.125f};

    w[0] = frit_from_host(m->device, FRIT_F32, FRIT_SHAPE(WIDTH), values, sizeof(float) * WIDTH);
    w[1] = frit_from_host(m->device, FRIT_F32, FRIT_SHAPE(WIDTH), values + WIDTH,
                          sizeof(float) * WIDTH);
    w[2] =
        frit_from_host(m->device, FRIT_F32, FRIT_SHAPE(1), values + MOST_GRADS - 1, sizeof(float));
}

static void release_weights(frit_tensor *w[N_WEIGHTS])
{
    for (int i = 0; i < N_WEIGHTS; i++)
        frit_release(w[i]);
}

/* ---- gradients ---- */

struct grads {
    float local[N_NETWORKS][MOST_GRADS], reduced[N_NETWORKS][MOST_GRADS];
    struct spy spy;
};

static bool watch(struct member *m, frit_tensor *const *w)
{
    MUST(m, frit_grad_begin(m->device, &m->err));
    for (int i = 0; i < N_WEIGHTS; i++)
        MUST(m, frit_grad_watch(w[i], &m->err));
    return true;
}

static bool read_grads(struct member *m, frit_tensor *const *w, float *out)
{
    for (int i = 0; i < N_WEIGHTS; i++) {
        const uint64_t bytes = frit_tensor_bytes(w[i]);

        MUST(m, frit_read(frit_grad_of(w[i]), out, bytes, &m->err));
        out += bytes / sizeof(*out);
    }
    return true;
}

static bool run_pass(struct member *m, frit_replica *replica, frit_tensor *const *w,
                     network_fn network, float *out)
{
    frit_tensor *loss;

    if (!watch(m, w))
        return false;
    loss = network(m, w);
    if (replica)
        MUST(m, frit_replica_backward(replica, w, loss, FRIT_REPLICA_SYNC, &m->err));
    else if (loss)
        MUST(m, frit_grad_backward(loss, &m->err));
    return read_grads(m, w, out);
}

static bool pass(struct member *m, frit_replica *replica, frit_tensor *const *w, network_fn network,
                 float *out)
{
    const frit_scope scope = frit_scope_begin(m->device);
    const bool good = run_pass(m, replica, w, network, out);

    frit_grad_end(m->device);
    frit_scope_end(scope);
    return good;
}

static bool run_networks(struct member *m, frit_replica *replica, frit_tensor *const *w)
{
    struct grads *g = m->ctx;

    spy_begin(&g->spy, m);
    for (int i = 0; i < N_NETWORKS; i++) {
        if (!pass(m, NULL, w, networks[i].loss, g->local[i]) ||
            !pass(m, replica, w, networks[i].loss, g->reduced[i]))
            return member_fail(m, "%s", networks[i].name);
        CHECK(m, g->spy.n == 2 * (uint32_t)(i + 1));
        CHECK(m, g->spy.counts[2 * i] == WIDTH + 1 && g->spy.counts[2 * i + 1] == WIDTH);
    }
    spy_end(&g->spy);
    return true;
}

/* Buckets of 16 bytes: the last two weights, then the first. */
static bool each_network(struct member *m)
{
    const frit_replica_config config = {
        .struct_size = sizeof(config), .bucket_bytes = 16, .first_bucket_bytes = 16};
    frit_replica *replica = NULL;
    frit_tensor *w[N_WEIGHTS];
    bool good;

    make_weights(m, w);
    good = !frit_replica_create(m->group, &config, w, N_WEIGHTS, &replica, &m->err) ||
           member_fail(m, "%s", m->err.text);
    good = good && run_networks(m, replica, w);
    frit_replica_destroy(replica);
    release_weights(w);
    return good;
}

static void test_every_network(void **state)
{
    static struct grads grads[2];
    static const char *const devices[] = {"reference:0"};
    struct member members[2] = {{.ctx = &grads[0]}, {.ctx = &grads[1]}};
    struct stage stage;

    (void)state;
    stage_open(&stage, devices, 1);
    stage_run(&stage, 2, members, each_network);
    for (int i = 0; i < N_NETWORKS; i++) {
        for (int k = 0; k < MOST_GRADS; k++) {
            const float want = (grads[0].local[i][k] + grads[1].local[i][k]) / 2;

            for (int r = 0; r < 2; r++) {
                if (grads[r].reduced[i][k] != want)
                    fail_msg("%s: gradient %d of rank %d is %g, not %g", networks[i].name, k, r,
                             (double)grads[r].reduced[i][k], (double)want);
            }
        }
    }
    stage_close(&stage);
}

/* ---- a parameter that an op made ---- */

/* The gradient of what it was made from is this rank's. */
static bool made(struct member *m)
{
    const frit_scope scope = frit_scope_begin(m->device);
    frit_tensor *base, *param, *loss;
    frit_replica *replica = NULL;
    float reduced, local;

    base = frit_full(m->device, FRIT_F32, FRIT_SHAPE(1), 3);
    param = frit_ref(base);
    MUST(m, frit_replica_create(m->group, NULL, &param, 1, &replica, &m->err));
    frit_release(param);
    MUST(m, frit_grad_begin(m->device, &m->err));
    MUST(m, frit_grad_watch(base, &m->err));
    param = frit_mul_f(base, 2);
    MUST(m, frit_grad_watch(param, &m->err));
    loss = frit_mul_f(param, 1 + 2.0 * m->rank);
    MUST(m, frit_replica_backward(replica, &param, loss, FRIT_REPLICA_SYNC, &m->err));
    MUST(m, frit_read(frit_grad_of(param), &reduced, sizeof(reduced), &m->err));
    MUST(m, frit_read(frit_grad_of(base), &local, sizeof(local), &m->err));
    frit_grad_end(m->device);
    frit_scope_end(scope);
    frit_replica_destroy(replica);
    CHECK(m, reduced == 2);
    CHECK(m, local == 2 * (1 + 2 * (float)m->rank));
    return true;
}

static void run_two(bool (*body)(struct member *m))
{
    static const char *const devices[] = {"reference:0"};
    struct member members[2] = {0};
    struct stage stage;

    stage_open(&stage, devices, 1);
    stage_run(&stage, 2, members, body);
    stage_close(&stage);
}

static void test_a_parameter_that_an_op_made(void **state)
{
    (void)state;
    run_two(made);
}

/* ---- one tensor as two parameters ---- */

static bool twice(struct member *m)
{
    const frit_scope scope = frit_scope_begin(m->device);
    frit_tensor *params[2], *same[2], *loss;
    frit_replica *replica;

    for (int i = 0; i < 2; i++)
        params[i] = frit_full(m->device, FRIT_F32, FRIT_SHAPE(1), 3);
    MUST(m, frit_replica_create(m->group, NULL, params, 2, &replica, &m->err));
    same[0] = same[1] = params[0];
    MUST(m, frit_grad_begin(m->device, &m->err));
    MUST(m, frit_grad_watch(params[0], &m->err));
    loss = frit_mul_f(params[0], 2);
    MUST_FAIL(m, frit_replica_backward(replica, same, loss, FRIT_REPLICA_SYNC, &m->err),
              FRIT_INVALID, "is the tensor of another one, too");
    frit_grad_end(m->device);
    frit_scope_end(scope);
    frit_replica_destroy(replica);
    for (int i = 0; i < 2; i++)
        frit_release(params[i]);
    return true;
}

static void test_one_tensor_as_two_parameters(void **state)
{
    (void)state;
    run_two(twice);
}

/* ---- modes ---- */

/* With each pass rank r adds r + 1 to the gradient. */
static bool add(struct member *m, frit_replica *replica, frit_tensor *w, uint32_t mode)
{
    frit_tensor *loss = frit_mul_f(w, 1.0 + m->rank);

    MUST(m, frit_replica_backward(replica, &w, loss, mode, &m->err));
    return true;
}

static bool expect_grad(struct member *m, frit_tensor *w, float want)
{
    float have;

    MUST(m, frit_read(frit_grad_of(w), &have, sizeof(have), &m->err));
    return have == want || member_fail(m, "the gradient is %g, not %g", (double)have, (double)want);
}

static bool refuse(struct member *m, frit_replica *replica, frit_tensor *w, uint32_t mode,
                   const char *part)
{
    frit_tensor *loss = frit_mul_f(w, 2);

    MUST_FAIL(m, frit_replica_backward(replica, &w, loss, mode, &m->err), FRIT_INVALID, part);
    return true;
}

static bool run_modes(struct member *m, frit_replica *replica, frit_tensor *w, struct spy *spy)
{
    MUST(m, frit_grad_begin(m->device, &m->err));
    MUST(m, frit_grad_watch(w, &m->err));
    for (int i = 0; i < 3; i++) {
        if (!add(m, replica, w, FRIT_REPLICA_ACCUMULATE))
            return false;
    }
    CHECK(m, spy->n == 0);
    if (!refuse(m, replica, w, FRIT_REPLICA_LOCAL, "LOCAL") ||
        !add(m, replica, w, FRIT_REPLICA_SYNC) || !expect_grad(m, w, 4 * 1.5f) ||
        !refuse(m, replica, w, FRIT_REPLICA_SYNC, "reduced already") ||
        !refuse(m, replica, w, FRIT_REPLICA_ACCUMULATE, "reduced already"))
        return false;
    CHECK(m, spy->n == 1);
    frit_grad_end(m->device);
    MUST(m, frit_grad_begin(m->device, &m->err));
    MUST(m, frit_grad_watch(w, &m->err));
    CHECK(m, add(m, replica, w, FRIT_REPLICA_LOCAL) && add(m, replica, w, FRIT_REPLICA_LOCAL));
    CHECK(m, expect_grad(m, w, 2 * (1 + (float)m->rank)));
    CHECK(m, refuse(m, replica, w, FRIT_REPLICA_SYNC, "LOCAL") && spy->n == 1);
    frit_grad_end(m->device);
    return true;
}

static bool modes(struct member *m)
{
    static struct spy spies[2];
    const frit_scope scope = frit_scope_begin(m->device);
    frit_tensor *w = frit_full(m->device, FRIT_F32, FRIT_SHAPE(1), 3);
    frit_replica *replica = NULL;
    bool good = true;

    if (frit_replica_create(m->group, NULL, &w, 1, &replica, &m->err))
        good = member_fail(m, "%s", m->err.text);
    spy_begin(&spies[m->rank], m);
    good = good && run_modes(m, replica, w, &spies[m->rank]);
    frit_scope_end(scope);
    spy_end(&spies[m->rank]);
    frit_replica_destroy(replica);
    frit_release(w);
    return good;
}

static void test_modes(void **state)
{
    (void)state;
    run_two(modes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_network),
        cmocka_unit_test(test_a_parameter_that_an_op_made),
        cmocka_unit_test(test_one_tensor_as_two_parameters),
        cmocka_unit_test(test_modes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
