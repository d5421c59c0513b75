/* SPDX-License-Identifier: Apache-2.0 */
/* Making replicas: ranks agree on parameters and configuration or all learn what differs; values
 * are those of rank 0, bit for bit; schedules. */
#include "dist/model.h"

static void run_ranks(uint32_t size, bool (*body)(struct member *m), void *ctx)
{
    static const char *const devices[] = {"reference:0", "cpu:0"};
    struct member members[MOST_MEMBERS] = {0};
    struct stage stage;

    for (uint32_t r = 0; r < size; r++)
        members[r].ctx = ctx;
    stage_open(&stage, devices, 2);
    stage_run(&stage, size, members, body);
    stage_close(&stage);
}

/* ---- what differs ---- */

enum { MOST_PARAMS = 3 };

/* What the ranks give; rank 1 of three may differ. */
struct given {
    uint32_t n, dtype[MOST_PARAMS];
    int64_t width[MOST_PARAMS];
    const char *names[MOST_PARAMS];
    frit_replica_config config;
};

struct difference {
    const char *what;
    struct given others, one;
    frit_status status;
    const char *text; /* of all ranks */
};

#define F FRIT_F32
static const struct difference differences[] = {
    {"a shape",
     {2, {F, F}, {4, 512}, {"a", "head.w"}, {0}},
     {2, {F, F}, {4, 10}, {"a", "head.w"}, {0}},
     FRIT_MISMATCH,
     "rank 1's parameter 1 is 'head.w' f32[10], rank 0's is 'head.w' f32[512]"},
    {"a type",
     {2, {F, F}, {4, 4}, {NULL}, {0}},
     {2, {FRIT_F64, F}, {4, 4}, {NULL}, {0}},
     FRIT_MISMATCH,
     "rank 1's parameter 0 is f64[4], rank 0's is f32[4]"},
    {"the order",
     {2, {F, F}, {4, 4}, {"a", "b"}, {0}},
     {2, {F, F}, {4, 4}, {"b", "a"}, {0}},
     FRIT_MISMATCH,
     "rank 1's parameter 0 is 'b' f32[4], rank 0's is 'a' f32[4]"},
    {"more",
     {2, {F, F}, {4, 4}, {"a", "b"}, {0}},
     {3, {F, F, F}, {4, 4, 4}, {"a", "b", "c"}, {0}},
     FRIT_MISMATCH,
     "rank 1 has more parameters than rank 0: its parameter 2 is 'c' f32[4]"},
    {"fewer",
     {2, {F, F}, {4, 4}, {"a", "b"}, {0}},
     {1, {F}, {4}, {"a"}, {0}},
     FRIT_MISMATCH,
     "rank 1 has fewer parameters than rank 0, whose parameter 1 is 'b' f32[4]"},
    {"the configuration",
     {1, {F}, {4}, {"a"}, {.bucket_bytes = 100}},
     {1, {F}, {4}, {"a"}, {.bucket_bytes = 100, .flags = FRIT_REPLICA_SUM | FRIT_REPLICA_KEEP}},
     FRIT_MISMATCH,
     "rank 1's configuration is 'sum, keep, buckets of 100 bytes, the first of 1048576', rank 0's "
     "is 'mean, buckets of 100 bytes, the first of 1048576'"},
    {"a type without gradients",
     {2, {F, F}, {4, 4}, {NULL}, {0}},
     {2, {F, FRIT_I32}, {4, 4}, {NULL}, {0}},
     FRIT_INVALID,
     "parameter 1 is of i32, not f16, bf16, f32 or f64"},
    {"flags",
     {1, {F}, {4}, {NULL}, {0}},
     {1, {F}, {4}, {NULL}, {.flags = 64}},
     FRIT_INVALID,
     "unknown flags 0x40"},
};
#undef F

static frit_status make(struct member *m, const struct given *given, frit_replica **out)
{
    frit_replica_config config = given->config;
    frit_tensor *params[MOST_PARAMS];
    frit_status st;

    config.struct_size = sizeof(config);
    config.names = given->names[0] ? given->names : NULL;
    for (uint32_t i = 0; i < given->n; i++)
        params[i] = frit_zeros(m->device, given->dtype[i], FRIT_SHAPE(given->width[i]));
    st = frit_replica_create(m->group, &config, params, given->n, out, &m->err);
    for (uint32_t i = 0; i < given->n; i++)
        frit_release(params[i]);
    return st;
}

/* The group goes on: the others' replica can be made then. */
static bool differ(struct member *m)
{
    for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
        const struct difference *d = &differences[i];
        frit_replica *replica;

        if (!member_failed_so(m, d->what, make(m, m->rank == 1 ? &d->one : &d->others, &replica),
                              d->status, d->text))
            return false;
        CHECK(m, !replica && strstr(m->err.text, "replica_create: group dp"));
        MUST(m, make(m, &d->others, &replica));
        frit_replica_destroy(replica);
    }
    return true;
}

static void test_what_differs_is_named(void **state)
{
    (void)state;
    run_ranks(3, differ, NULL);
}

/* ---- values ---- */

enum { N_BITS = 5 };

/* Of rank 0: a NaN with a payload, -0, an infinity, a denormal; 5 elements of 2 bytes are no whole
 * words. */
static const uint16_t half_bits[N_BITS] = {0x7e01, 0x8000, 0xfc00, 0x0001, 0x3c00};
static const uint32_t single_bits[N_BITS] = {0x7fc01234, 0x80000000, 0xff800000, 1, 0x3f800000};
static const uint64_t double_bits[N_BITS] = {0x7ff8000000001234u, 0x8000000000000000u,
                                             0xfff0000000000000u, 1, 0x3ff0000000000000u};

static bool has_bits(struct member *m, frit_tensor *tensor, const void *want, uint64_t bytes)
{
    unsigned char have[N_BITS * 8];

    MUST(m, frit_read(tensor, have, bytes, &m->err));
    return memcmp(have, want, bytes) == 0 ||
           member_fail(m, "other bits of %s", frit_dtype_name(frit_tensor_dtype(tensor)));
}

static bool spread(struct member *m)
{
    static const struct {
        uint32_t dtype;
        const void *bits;
        uint64_t bytes;
    } all[] = {
        {FRIT_F16, half_bits, sizeof(half_bits)},
        {FRIT_BF16, half_bits, sizeof(half_bits)},
        {FRIT_F32, single_bits, sizeof(single_bits)},
        {FRIT_F64, double_bits, sizeof(double_bits)},
    };
    const uint32_t keep = *(const uint32_t *)m->ctx;
    const frit_replica_config config = {.struct_size = sizeof(config), .flags = keep};
    const unsigned char other[N_BITS * 8] = {1, 2, 3};
    frit_tensor *params[4];
    frit_replica *replica;
    bool good = true;

    for (int i = 0; i < 4; i++)
        params[i] = frit_from_host(m->device, all[i].dtype, FRIT_SHAPE(N_BITS),
                                   m->rank ? other : all[i].bits, all[i].bytes);
    MUST(m, frit_replica_create(m->group, &config, params, 4, &replica, &m->err));
    for (int i = 0; i < 4; i++)
        good &= has_bits(m, params[i], keep && m->rank ? other : all[i].bits, all[i].bytes);
    for (int i = 0; i < 4; i++)
        frit_release(params[i]);
    frit_replica_destroy(replica);
    return good;
}

static void test_values_are_those_of_rank_0(void **state)
{
    uint32_t keep = 0;

    (void)state;
    run_ranks(3, spread, &keep);
    keep = FRIT_REPLICA_KEEP;
    run_ranks(2, spread, &keep);
}

/* ---- schedules ---- */

static bool has_text(struct member *m, const frit_replica *replica, const char *want)
{
    char *have = frit_replica_text(replica);
    const bool good = strcmp(have, want) == 0;

    if (!good)
        member_fail(m, "'%s' is not '%s'", have, want);
    frit_free(have);
    return good;
}

/* From the last parameter to the first; a small bucket first; one type a bucket; one parameter that
 * is too large by itself. */
static bool schedules(struct member *m)
{
    static const struct {
        uint32_t dtype;
        int64_t width;
    } of[] = {{FRIT_F32, 2}, {FRIT_F32, 6}, {FRIT_F16, 4}, {FRIT_F32, 100}, {FRIT_F32, 0},
              {FRIT_F16, 8}, {FRIT_F32, 7}, {FRIT_F32, 3}, {FRIT_F32, 2}};
    enum { N = sizeof(of) / sizeof(of[0]) };
    const frit_replica_config config = {
        .struct_size = sizeof(config), .bucket_bytes = 40, .first_bucket_bytes = 20};
    frit_tensor *params[N];
    frit_replica *replica;
    bool good;

    for (int i = 0; i < N; i++)
        params[i] = frit_zeros(m->device, of[i].dtype, FRIT_SHAPE(of[i].width));
    MUST(m, frit_replica_create(m->group, &config, params, N, &replica, &m->err));
    good = has_text(m, replica,
                    "mean, buckets of 40 bytes, the first of 20, digest 0cf71df6b0262c45\n"
                    "bucket 1 of 6 (20 bytes f32, 8 to 7)\n"
                    "  parameter 8 f32[2] at 0\n"
                    "  parameter 7 f32[3] at 2\n"
                    "bucket 2 of 6 (16 bytes f16, 5 to 5)\n"
                    "  parameter 5 f16[8] at 0\n"
                    "bucket 3 of 6 (28 bytes f32, 6 to 4)\n"
                    "  parameter 6 f32[7] at 0\n"
                    "  parameter 4 f32[0] at 7\n"
                    "bucket 4 of 6 (400 bytes f32, 3 to 3)\n"
                    "  parameter 3 f32[100] at 0\n"
                    "bucket 5 of 6 (8 bytes f16, 2 to 2)\n"
                    "  parameter 2 f16[4] at 0\n"
                    "bucket 6 of 6 (32 bytes f32, 1 to 0)\n"
                    "  parameter 1 f32[6] at 0\n"
                    "  parameter 0 f32[2] at 6\n");
    for (int i = 0; i < N; i++)
        frit_release(params[i]);
    frit_replica_destroy(replica);
    return good;
}

static void test_schedules(void **state)
{
    (void)state;
    run_ranks(1, schedules, NULL);
}

/* ---- misuse ---- */

static bool misuse(struct member *m)
{
    frit_tensor *w = frit_zeros(m->device, FRIT_F32, FRIT_SHAPE(2)), *twice[] = {w, w};
    frit_replica *replica, *second;
    const frit_replica_config config = {.struct_size = 0};
    frit_tensor *none;
    uint32_t n_present;

    MUST_FAIL(m, frit_replica_create(m->group, &config, &w, 1, &second, &m->err), FRIT_INVALID,
              "struct_size");
    MUST_FAIL(m, frit_replica_create(m->group, NULL, &w, 0, &second, &m->err), FRIT_INVALID,
              "0 parameters");
    MUST_FAIL(m, frit_replica_create(NULL, NULL, &w, 1, &second, &m->err), FRIT_INVALID,
              "the rank is NULL");
    MUST_FAIL(m, frit_replica_create(m->group, NULL, NULL, 1, &second, &m->err), FRIT_INVALID,
              "the list of parameters is NULL");
    MUST_FAIL(m, frit_replica_create(m->group, NULL, twice, 2, &second, &m->err), FRIT_INVALID,
              "parameters 0 and 1 are one tensor");
    MUST(m, frit_replica_create(m->group, NULL, &w, 1, &replica, &m->err));
    MUST_FAIL(m, frit_replica_create(m->group, NULL, &w, 1, &second, &m->err), FRIT_BUSY,
              "the rank has a replica");
    MUST_FAIL(m, frit_group_leave(m->group, &m->err), FRIT_BUSY, "destroy that first");
    MUST_FAIL(m, frit_replica_shadow(replica, &none, &n_present, &m->err), FRIT_INVALID,
              "FRIT_REPLICA_UNEVEN");
    MUST_FAIL(m, frit_replica_backward(replica, &w, w, 4, &m->err), FRIT_INVALID, "no mode 4");
    MUST_FAIL(m, frit_replica_backward(replica, &w, NULL, FRIT_REPLICA_LOCAL, &m->err),
              FRIT_INVALID, "the loss is NULL");
    MUST_FAIL(m, frit_replica_backward(replica, &w, w, FRIT_REPLICA_SYNC, &m->err), FRIT_INVALID,
              "frit_grad_begin comes first");
    MUST_FAIL(m, frit_replica_backward(NULL, &w, w, FRIT_REPLICA_SYNC, &m->err), FRIT_INVALID,
              "the replica is NULL");
    MUST_FAIL(m, frit_replica_reduce(NULL, &none, &m->err), FRIT_INVALID, "the replica is NULL");
    MUST_FAIL(m, frit_replica_shadow(NULL, &none, &n_present, &m->err), FRIT_INVALID,
              "the replica is NULL");
    MUST_FAIL(m, frit_replica_join(NULL, &w, &m->err), FRIT_INVALID, "the replica is NULL");
    CHECK(m, !frit_replica_text(NULL));
    frit_replica_destroy(replica);
    frit_replica_destroy(NULL);
    MUST(m, frit_replica_create(m->group, NULL, &w, 1, &replica, &m->err));
    frit_replica_destroy(replica);
    frit_release(w);
    return true;
}

static void test_misuse(void **state)
{
    (void)state;
    run_ranks(2, misuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_differs_is_named),
        cmocka_unit_test(test_values_are_those_of_rank_0),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_misuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
