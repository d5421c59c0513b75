/* SPDX-License-Identifier: Apache-2.0 */
/* Order and accesses of the evaluator; what each instruction computes is in eval_rows_test.c. */
#include "unit.h"

#include <string.h>

#include "base/fail.h"
#include "failing_alloc.h"
#include "kernels/ir/rig.h"

/* A phase of `lanes` over argument 0, read, and 1, written. */
static void begin(struct kir_module *m, uint32_t dtype, uint32_t lanes)
{
    kir_init(m, "test");
    kir_arg(m, dtype, KIR_READ);
    kir_arg(m, dtype, KIR_WRITE);
    kir_phase(m, lanes);
}

/* group * lanes + lane */
static uint32_t index_of(struct kir_module *m, int32_t lanes)
{
    uint32_t group = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);

    return OP2(m, add, OP2(m, mul, group, rig_int(m, lanes)), OP0(m, lane));
}

static void test_chain(void **state)
{
    float in[8] = {0, 1, 2, 3, 4, 5, 6, 7}, out[8] = {0};
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(out)};
    uint64_t words[1] = {bits_f32(0.5f)};
    struct kir_module m;
    uint32_t at, x;

    (void)state;
    begin(&m, FRIT_F32, 4);
    at = index_of(&m, 4);
    x = rig_load(&m, KIR_F32, 0, at);
    x = OP2(&m, mul, OP2(&m, add, x, kir_const_f(&m, KIR_F32, 1)), kir_param(&m, KIR_F32));
    rig_store(&m, 1, at, x);
    rig_run(&m, words, args, 2);
    for (int i = 0; i < 8; i++)
        assert_true(out[i] == (float)(i + 1) * 0.5f);
    kir_fini(&m);
}

/* Parameters of types of 32 bits and B take the low bits of their words. */
static void test_params(void **state)
{
    int32_t out[3] = {0};
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(out)};
    uint64_t words[] = {0xffffffff00000005, 0xfffffffffffffffe, 0xffffffff00000007};
    struct kir_module m;
    uint32_t five, none, seven;

    (void)state;
    begin(&m, FRIT_I32, 1);
    five = kir_param(&m, KIR_I32);
    none = OP1(&m, i32, kir_param(&m, KIR_B));
    seven = OP1(&m, i32, kir_param(&m, KIR_I64));
    rig_store(&m, 1, rig_int(&m, 0), five);
    rig_store(&m, 1, rig_int(&m, 1), OP2(&m, sub, none, rig_int(&m, 1)));
    rig_store(&m, 1, rig_int(&m, 2), OP2(&m, udiv, OP2(&m, add, five, seven), rig_int(&m, 2)));
    rig_run(&m, words, args, 1);
    assert_int_equal(out[0], 5);
    assert_int_equal(out[1], -1);
    assert_int_equal(out[2], 6);
    kir_fini(&m);
}

/* ---- loops and ifs ---- */

/* out[0], out[1]: the numbers of Fibonacci n and n + 1, by phis that change places. */
static void make_fibonacci(struct kir_module *m)
{
    uint32_t n, phi[2], next[2];

    begin(m, FRIT_I32, 2);
    n = kir_param(m, KIR_I32);
    next[0] = rig_int(m, 0);
    next[1] = rig_int(m, 1);
    kir_for(m, next[0], n, 1);
    phi[0] = kir_phi(m, next[0]);
    phi[1] = kir_phi(m, next[1]);
    next[1] = OP2(m, add, phi[0], phi[1]);
    next[0] = phi[1];
    kir_next(m, next, 2);
    rig_store(m, 1, rig_int(m, 0), phi[0]);
    rig_store(m, 1, rig_int(m, 1), phi[1]);
}

static void test_phis(void **state)
{
    int32_t out[2], want[] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(out)};
    struct kir_module m;

    (void)state;
    make_fibonacci(&m);
    for (uint64_t n = 0; n < 8; n++) {
        rig_run(&m, &n, args, 1);
        assert_int_equal(out[0], want[n]);
        assert_int_equal(out[1], want[n + 1]);
    }
    /* A negative length is not a round at all. */
    rig_run(&m, (uint64_t[]){UINT64_MAX}, args, 1);
    assert_int_equal(out[0], 0);
    kir_fini(&m);
}

/* Two phis that each take what the other had. */
static void test_swap(void **state)
{
    int32_t out[2];
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(out)};
    struct kir_module m;
    uint32_t n, phi[2], five, seven;

    (void)state;
    begin(&m, FRIT_I32, 1);
    n = kir_param(&m, KIR_I32);
    five = rig_int(&m, 5);
    seven = rig_int(&m, 7);
    kir_for(&m, rig_int(&m, 0), n, 1);
    phi[0] = kir_phi(&m, five);
    phi[1] = kir_phi(&m, seven);
    kir_next(&m, (const uint32_t[]){phi[1], phi[0]}, 2);
    rig_store(&m, 1, rig_int(&m, 0), phi[0]);
    rig_store(&m, 1, rig_int(&m, 1), phi[1]);
    for (uint64_t rounds = 0; rounds < 3; rounds++) {
        rig_run(&m, &rounds, args, 1);
        assert_int_equal(out[0], rounds == 1 ? 7 : 5);
        assert_int_equal(out[1], rounds == 1 ? 5 : 7);
    }
    kir_fini(&m);
}

/* The sum over i < 3 and j = i, i + 2, ... < 7 of 10 i + j, in I64. */
static void test_nested(void **state)
{
    int64_t out[1], want = 0;
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(out)};
    struct kir_module m;
    uint32_t zero, i, j, outer, inner, sum;

    (void)state;
    begin(&m, FRIT_I64, 1);
    zero = kir_const_i(&m, KIR_I64, 0);
    i = kir_for(&m, zero, kir_const_i(&m, KIR_I64, 3), 1);
    outer = kir_phi(&m, zero);
    j = kir_for(&m, i, kir_const_i(&m, KIR_I64, 7), 2);
    inner = kir_phi(&m, outer);
    sum = OP2(&m, add, OP2(&m, mul, i, kir_const_i(&m, KIR_I64, 10)), j);
    sum = OP2(&m, add, inner, sum);
    kir_next(&m, &sum, 1);
    kir_next(&m, &inner, 1);
    rig_store(&m, 1, rig_int(&m, 0), outer);
    rig_run(&m, NULL, args, 1);
    for (int a = 0; a < 3; a++) {
        for (int b = a; b < 7; b += 2)
            want += 10 * a + b;
    }
    assert_int_equal(out[0], want);
    kir_fini(&m);
}

static void test_if(void **state)
{
    int32_t out[2] = {0};
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(out)};
    struct kir_module m;
    uint32_t taken;

    (void)state;
    begin(&m, FRIT_I32, 1);
    taken = kir_param(&m, KIR_B);
    kir_if(&m, taken);
    rig_store(&m, 1, rig_int(&m, 0), rig_int(&m, 11));
    kir_if(&m, OP1(&m, not, taken));
    rig_store(&m, 1, rig_int(&m, 1), rig_int(&m, 12));
    kir_end(&m);
    kir_end(&m);
    rig_run(&m, (uint64_t[]){0}, args, 1);
    assert_int_equal(out[0], 0);
    rig_run(&m, (uint64_t[]){1}, args, 1);
    assert_int_equal(out[0], 11);
    assert_int_equal(out[1], 0);
    kir_fini(&m);
}

static void test_counter(void **state)
{
    struct eval_arg args[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
    struct kir_module m;

    (void)state;
    begin(&m, FRIT_I32, 1);
    kir_for(&m, rig_int(&m, INT32_MAX - 5), rig_int(&m, INT32_MAX), 4);
    kir_next(&m, NULL, 0);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %3 next: the counter, 2147483646, goes beyond its type");
    kir_fini(&m);
}

/* ---- lanes ---- */

static void test_lanes(void **state)
{
    int32_t out[24];
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(out)};
    struct kir_module m;
    uint32_t lane, x;

    (void)state;
    begin(&m, FRIT_I32, 8);
    lane = OP0(&m, lane);
    x = OP2(&m, mul, lane, lane);
    rig_store(&m, 1, lane, kir_emit_imm(&m, KIR_exchange, 2, x, KIR_NONE, KIR_NONE));
    rig_store(&m, 1, OP2(&m, add, lane, rig_int(&m, 8)),
              kir_emit_imm(&m, KIR_shift, 3, x, KIR_NONE, KIR_NONE));
    rig_store(&m, 1, OP2(&m, add, lane, rig_int(&m, 16)),
              OP1(&m, first, OP2(&m, add, x, rig_int(&m, 9))));
    rig_run(&m, NULL, args, 1);
    for (int i = 0; i < 8; i++) {
        int from = i < 3 ? i : i - 3;

        assert_int_equal(out[i], (i ^ 2) * (i ^ 2));
        assert_int_equal(out[8 + i], from * from);
        assert_int_equal(out[16 + i], 9);
    }
    kir_fini(&m);
}

/* Groups have coordinates in three dims, and a phase sees what the one before it stored. */
static void test_phases(void **state)
{
    int32_t out[12] = {0};
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(out)};
    const uint32_t grid[2][3] = {{2, 3, 2}, {12, 1, 1}};
    struct kir_module m;
    uint32_t at = 0;

    (void)state;
    begin(&m, FRIT_I32, 1);
    for (uint32_t dim = 0; dim < 3; dim++) {
        uint32_t group = kir_emit_imm(&m, KIR_group, dim, KIR_NONE, KIR_NONE, KIR_NONE);

        at =
            dim == 0 ? group : OP2(&m, add, at, OP2(&m, mul, group, rig_int(&m, dim == 1 ? 2 : 6)));
    }
    rig_store(&m, 1, at, at);
    kir_phase(&m, 1);
    at = kir_emit_imm(&m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    rig_store(&m, 1, at, OP2(&m, mul, rig_load(&m, KIR_I32, 0, at), rig_int(&m, 10)));
    assert_int_equal(eval_run(&m, NULL, args, grid, NULL), FRIT_OK);
    for (int i = 0; i < 12; i++)
        assert_int_equal(out[i], 10 * i);
    kir_fini(&m);
}

/* ---- tiles ---- */

/* out[i] = in[3 - i] through a tile. */
static void make_reverse(struct kir_module *m, bool barrier, int32_t last)
{
    uint32_t lane, tile;

    begin(m, FRIT_I32, 4);
    tile = kir_tile(m, KIR_GROUP, KIR_I32, 4);
    lane = OP0(m, lane);
    rig_tstore(m, tile, lane, rig_load(m, KIR_I32, 0, lane));
    if (barrier)
        OP0(m, barrier);
    rig_store(m, 1, lane, rig_tload(m, KIR_I32, tile, OP2(m, sub, rig_int(m, last), lane)));
}

static void test_group_tile(void **state)
{
    int32_t in[4] = {5, 6, 7, 8}, out[4] = {0};
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(out)};
    struct kir_module m;

    (void)state;
    make_reverse(&m, true, 3);
    rig_run(&m, NULL, args, 1);
    assert_int_equal(out[0], 8);
    assert_int_equal(out[3], 5);
    kir_fini(&m);
    make_reverse(&m, false, 3);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %5 tload: lane 0 reads element 3 of tile 0, which lane "
                "3 wrote, with no barrier");
    kir_fini(&m);
    make_reverse(&m, true, 4);
    rig_run_bad(
        &m, NULL, args, 1,
        "phase 0, group (0, 0, 0), %6 tload: lane 0 is at element 4 of tile 0, which has 4");
    kir_fini(&m);
    make_reverse(&m, true, 2);
    rig_run_bad(
        &m, NULL, args, 1,
        "phase 0, group (0, 0, 0), %6 tload: lane 3 is at element -1 of tile 0, which has 4");
    kir_fini(&m);
}

/* Reading and then writing, and two lanes writing; equal values are let pass. */
static void test_races(void **state)
{
    struct eval_arg args[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
    struct kir_module m;
    uint32_t lane, zero;

    (void)state;
    begin(&m, FRIT_I32, 4);
    kir_tile(&m, KIR_GROUP, KIR_I32, 1);
    zero = rig_int(&m, 0);
    rig_tstore(&m, 0, zero, zero);
    OP0(&m, barrier);
    rig_tload(&m, KIR_I32, 0, zero);
    rig_tstore(&m, 0, zero, zero);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %4 tstore: lane 0 writes element 0 of tile 0, which "
                "others read, with no barrier");
    kir_fini(&m);
    begin(&m, FRIT_I32, 4);
    kir_tile(&m, KIR_GROUP, KIR_I32, 1);
    lane = OP0(&m, lane);
    rig_tstore(&m, 0, rig_int(&m, 0), lane);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %2 tstore: lane 1 writes element 0 of tile 0, which "
                "lane 0 wrote otherwise, with no barrier");
    kir_fini(&m);
}

/* A lane's tile is its own; tiles start anew in each group, with ones. */
static void test_lane_tile(void **state)
{
    int32_t out[8];
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(out)};
    struct kir_module m;
    uint32_t lane, at, zero, even;

    (void)state;
    begin(&m, FRIT_I32, 4);
    kir_tile(&m, KIR_LANE, KIR_I32, 2);
    lane = OP0(&m, lane);
    at = index_of(&m, 4);
    zero = rig_int(&m, 0);
    even = OP2(&m, eq, at, lane);
    kir_emit_imm(&m, KIR_tstore_if, 0, zero, OP2(&m, mul, lane, lane), even);
    rig_store(&m, 1, at, rig_tload(&m, KIR_I32, 0, zero));
    rig_run(&m, NULL, args, 2);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(out[i], i * i);
        assert_int_equal(out[4 + i], -1);
    }
    kir_fini(&m);
}

/* ---- arguments ---- */

/* out[lane + by] = in[lane + by] */
static void make_copy(struct kir_module *m, int64_t by, bool wide)
{
    uint32_t at;

    begin(m, FRIT_I16, 4);
    m->wide = wide;
    at = OP0(m, lane);
    at = wide ? OP2(m, add, OP1(m, i64, at), kir_const_i(m, KIR_I64, by))
              : OP2(m, add, at, rig_int(m, (int32_t)by));
    rig_store(m, 1, at, rig_load(m, KIR_I32, 0, at));
}

static void test_bounds(void **state)
{
    int16_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
    struct eval_arg args[] = {{in + 3, 6, 10}, {out + 3, 6, 10}};
    struct kir_module m;

    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        make_copy(&m, -3, wide);
        rig_run(&m, NULL, args, 1);
        kir_fini(&m);
        make_copy(&m, 1, wide);
        rig_run(&m, NULL, args, 1);
        kir_fini(&m);
        assert_memory_equal(in, out, sizeof(in));
        memset(out, 0, sizeof(out));
    }
    make_copy(&m, -4, false);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %3 load: lane 0 is at element -4 of argument 0, which "
                "has -3 up to 5");
    kir_fini(&m);
    make_copy(&m, 2, false);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %3 load: lane 3 is at element 5 of argument 0, which "
                "has -3 up to 5");
    kir_fini(&m);
    make_copy(&m, INT64_MIN, true);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %4 load: lane 0 is at element -9223372036854775808 of "
                "argument 0, which has -3 up to 5");
    kir_fini(&m);
    make_copy(&m, 0, false);
    args[1].after = 7; /* not all of the last element */
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %4 store: lane 3 is at element 3 of argument 1, which "
                "has -3 up to 3");
    kir_fini(&m);
}

static void test_conditional(void **state)
{
    int32_t in[3] = {4, 5, 6}, out[3] = {0};
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(out)};
    struct kir_module m;
    uint32_t lane, inside, x;

    (void)state;
    begin(&m, FRIT_I32, 4);
    lane = OP0(&m, lane);
    inside = OP2(&m, lt, lane, rig_int(&m, 2));
    x = kir_emit_as(&m, KIR_load_if, KIR_I32, 0, lane, inside, rig_int(&m, -9));
    kir_emit_imm(&m, KIR_store_if, 1, lane, x, OP2(&m, lt, lane, rig_int(&m, 3)));
    rig_run(&m, NULL, args, 1);
    assert_int_equal(out[0], 4);
    assert_int_equal(out[1], 5);
    assert_int_equal(out[2], -9);
    kir_fini(&m);
}

/* One element in, as the value of its type, and out again. */
static uint64_t through(uint32_t dtype, uint64_t raw, enum kir_type type, bool *same)
{
    struct {
        uint64_t in, value, out;
    } memory = {raw, 0, 0};
    size_t bytes = (size_t)frit_storage_bytes(dtype, 1);
    struct eval_arg args[] = {
        {&memory.in, 0, bytes}, {&memory.out, 0, bytes}, {&memory.value, 0, 8}};
    struct kir_module m;
    uint32_t zero, x;

    begin(&m, dtype, 1);
    kir_arg(&m,
            type == KIR_F32   ? FRIT_F32
            : type == KIR_F64 ? FRIT_F64
            : type == KIR_I64 ? FRIT_I64
                              : FRIT_I32,
            KIR_WRITE);
    zero = rig_int(&m, 0);
    x = rig_load(&m, type, 0, zero);
    rig_store(&m, 1, zero, x);
    rig_store(&m, 2, zero, type == KIR_B ? OP1(&m, i32, x) : x);
    rig_run(&m, NULL, args, 1);
    kir_fini(&m);
    *same = memory.in == memory.out;
    return memory.value;
}

static void test_dtypes(void **state)
{
    static const struct {
        uint32_t dtype;
        enum kir_type type;
        uint64_t raw, value;
    } rows[] = {
        {FRIT_I8, KIR_I32, 0x80, 0xffffff80},
        {FRIT_U8, KIR_I32, 0x80, 0x80},
        {FRIT_I16, KIR_I32, 0xfffe, 0xfffffffe},
        {FRIT_U16, KIR_I32, 0xfffe, 0xfffe},
        {FRIT_I32, KIR_I32, 0xfffffffd, 0xfffffffd},
        {FRIT_U32, KIR_I32, 0xfffffffd, 0xfffffffd},
        {FRIT_I64, KIR_I64, 0xfffffffffffffffd, 0xfffffffffffffffd},
        {FRIT_U64, KIR_I64, 7, 7},
        {FRIT_F16, KIR_F32, 0xc000, 0xc0000000},
        {FRIT_BF16, KIR_F32, 0xc000, 0xc0000000},
        {FRIT_F32, KIR_F32, 0x7f800001, 0x7f800001},
        {FRIT_F64, KIR_F64, 0x7ff0000000000001, 0x7ff0000000000001},
        {FRIT_BOOL, KIR_B, 1, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool same;

        assert_int_equal(through(rows[i].dtype, rows[i].raw, rows[i].type, &same), rows[i].value);
        assert_true(same);
    }
}

static void test_atomic(void **state)
{
    float out[2] = {10, 0};
    int32_t count[1] = {-1};
    struct eval_arg args[] = {RIG_ARRAY(out), RIG_ARRAY(count)};
    struct kir_module m;
    uint32_t lane, some, at;

    (void)state;
    kir_init(&m, "test");
    kir_arg(&m, FRIT_F32, KIR_READ | KIR_WRITE);
    kir_arg(&m, FRIT_I32, KIR_READ | KIR_WRITE);
    kir_phase(&m, 8);
    lane = OP0(&m, lane);
    some = OP2(&m, ne, lane, rig_int(&m, 3));
    at = OP2(&m, and, lane, rig_int(&m, 1));
    kir_emit_imm(&m, KIR_atomic_add, 0, at, OP1(&m, f32, lane), some);
    kir_emit_imm(&m, KIR_atomic_add, 1, rig_int(&m, 0), lane, some);
    rig_run(&m, NULL, args, 1);
    assert_true(out[0] == 10 + 0 + 2 + 4 + 6);
    assert_true(out[1] == 1 + 5 + 7);
    assert_int_equal(count[0], -1 + 28 - 3);
    kir_fini(&m);
}

/* ---- the rest ---- */

static void test_sample(void **state)
{
    float in[2][7], out[2] = {0}, want[2] = {0};
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(out)};
    uint64_t words[1] = {7};
    struct kir_module m;

    (void)state;
    for (int i = 0; i < 14; i++) {
        in[i / 7][i % 7] = (float)(i * i);
        want[i / 7] += (float)(i * i);
    }
    rig_row_sum(&m);
    rig_run(&m, words, args, 2);
    assert_true(out[0] == want[0] && out[1] == want[1]);
    kir_fini(&m);
}

static void test_refused(void **state)
{
    struct eval_arg args[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
    struct kir_module m;

    (void)state;
    begin(&m, FRIT_F32, 3);
    rig_run_bad(&m, NULL, args, 1, "phase 0: 3 lanes are not a power of two up to 65536");
    kir_fini(&m);
}

static void test_memory(void **state)
{
    float in[7] = {1}, out[1];
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(out)};
    const uint32_t grid[1][3] = {{1, 1, 1}};
    uint64_t words[1] = {7};
    struct kir_module m;

    (void)state;
    rig_row_sum(&m);
    for (long n = 0, hit = 1; hit; n++) {
        frit_status st;

        failing_alloc_arm(n);
        st = eval_run(&m, words, args, grid, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
    }
    assert_true(out[0] == 1);
    kir_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),   cmocka_unit_test(test_params),
        cmocka_unit_test(test_phis),    cmocka_unit_test(test_nested),
        cmocka_unit_test(test_swap),    cmocka_unit_test(test_if),
        cmocka_unit_test(test_counter), cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_phases),  cmocka_unit_test(test_group_tile),
        cmocka_unit_test(test_races),   cmocka_unit_test(test_lane_tile),
        cmocka_unit_test(test_bounds),  cmocka_unit_test(test_conditional),
        cmocka_unit_test(test_dtypes),  cmocka_unit_test(test_atomic),
        cmocka_unit_test(test_sample),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
