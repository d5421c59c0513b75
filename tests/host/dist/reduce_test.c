/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that the program has: sums and means of each element type, without overflow; those that
 * are absent, and those that are wrong. */
#include "dist/model.h"

enum { RANKS = 3 };

static void run_ranks(bool (*body)(struct member *m))
{
    static const char *const devices[] = {"reference:0", "cpu:0"};
    struct member members[RANKS] = {0};
    struct stage stage;

    stage_open(&stage, devices, 2);
    stage_run(&stage, RANKS, members, body);
    stage_close(&stage);
}

static bool expect(struct member *m, frit_tensor *grad, uint32_t dtype, double want)
{
    double have[2];

    CHECK(m, frit_tensor_dtype(grad) == dtype);
    MUST(m, frit_read(frit_take(frit_cast(grad, FRIT_F64)), have, sizeof(have), &m->err));
    return (have[0] == want && have[1] == want) ||
           member_fail(m, "%s: %g and %g, not %g", frit_dtype_name(dtype), have[0], have[1], want);
}

/* One gradient of each type, two elements each. */
static const uint32_t types[] = {FRIT_F16, FRIT_BF16, FRIT_F32, FRIT_F64};
enum { N = sizeof(types) / sizeof(types[0]) };

static void make(struct member *m, frit_tensor *out[N], double value)
{
    for (int i = 0; i < N; i++)
        out[i] = frit_full(m->device, types[i], FRIT_SHAPE(2), value);
}

static void release(frit_tensor *tensors[N])
{
    for (int i = 0; i < N; i++)
        frit_release(tensors[i]);
}

/* Every rank has `value`, or none if it is `absent`. */
static bool reduce(struct member *m, uint32_t flags, double value, uint32_t absent, double want)
{
    const frit_replica_config config = {.struct_size = sizeof(config), .flags = flags};
    frit_tensor *params[N], *grads[N] = {NULL};
    frit_replica *replica;
    bool good = true;

    make(m, params, 0);
    MUST(m, frit_replica_create(m->group, &config, params, N, &replica, &m->err));
    if (m->rank != absent)
        make(m, grads, value);
    MUST(m, frit_replica_reduce(replica, grads, &m->err));
    for (int i = 0; i < N; i++)
        good &= expect(m, grads[i], types[i], want);
    release(grads);
    release(params);
    frit_replica_destroy(replica);
    return good;
}

/* 57344 is a number of all types; three times as much is none of f16. */
static bool values(struct member *m)
{
    return reduce(m, 0, 57344, RANKS, 57344) &&
           reduce(m, FRIT_REPLICA_UNEVEN, 57344, RANKS, 57344) &&
           reduce(m, FRIT_REPLICA_SUM, 1536, RANKS, 4608) &&
           reduce(m, FRIT_REPLICA_SUM | FRIT_REPLICA_UNEVEN, 1536, 1, 3072) &&
           reduce(m, 0, 3, 2, 2) && reduce(m, FRIT_REPLICA_UNEVEN, 3, 0, 2);
}

static void test_values(void **state)
{
    (void)state;
    run_ranks(values);
}

/* Refused on all ranks; the group goes on, and handles stay. */
static bool refusals(struct member *m)
{
    frit_tensor *params[N], *grads[N], *good;
    frit_replica *replica;

    make(m, params, 0);
    make(m, grads, 3);
    MUST(m, frit_replica_create(m->group, NULL, params, N, &replica, &m->err));
    good = grads[2];
    grads[2] = frit_full(m->device, FRIT_F32, FRIT_SHAPE(3), 1);
    MUST_FAIL(m, frit_replica_reduce(replica, grads, &m->err), FRIT_INVALID,
              "replica_reduce: the gradient of parameter 2 is f32[3], not f32[2]");
    frit_release(grads[2]);
    MUST_FAIL(m, frit_replica_reduce(replica, grads, &m->err), FRIT_INVALID,
              "the gradient of parameter 2");
    grads[2] = frit_add(params[0], params[2]);
    MUST_FAIL(m, frit_replica_reduce(replica, grads, &m->err), FRIT_INVALID,
              "the gradient of parameter 2: add: ");
    frit_release(grads[2]);
    MUST_FAIL(m, frit_replica_reduce(replica, NULL, &m->err), FRIT_INVALID, "is NULL");
    grads[2] = good;
    MUST(m, frit_replica_reduce(replica, grads, &m->err));
    for (int i = 0; i < N; i++)
        CHECK(m, expect(m, grads[i], types[i], 3));
    release(grads);
    release(params);
    frit_replica_destroy(replica);
    return true;
}

static void test_refusals(void **state)
{
    (void)state;
    run_ranks(refusals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_refusals)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
