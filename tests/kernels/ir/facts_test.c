/* SPDX-License-Identifier: Apache-2.0 */
/* Facts against what is written beside them, and against what random modules do when they run. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "failing_alloc.h"
#include "ir/facts.h"
#include "ir/text.h"
#include "kernels/ir/rig.h"

/* Each line of `body` ends with the fact of its value: "u", "v", or the stride. */
static void check_facts(const char *head, const char *body)
{
    struct str text = {0};
    struct facts facts;
    struct kir_module m;
    frit_err err = ERR_INIT;
    const char *line = body;

    str_addf(&text, "kernel k\nparams 4\narg a0 i32 read\narg a1 i64 read\n%s%s", head, body);
    if (kir_parse(text.text, text.length, &m, &err))
        fail_msg("%s", err.text);
    assert_int_equal(facts_init(&facts, &m, 0, NULL), FRIT_OK);
    for (uint32_t i = 0; i < facts.n; i++) {
        const char *note = strchr(line, '#') + 1;
        char have[32];

        snprintf(have, sizeof(have), "%lld", (long long)facts.of[i].stride);
        if (facts.of[i].kind != FACT_LINEAR)
            snprintf(have, sizeof(have), "%c", facts.of[i].kind == FACT_UNIFORM ? 'u' : 'v');
        if (strncmp(note, have, strlen(have)) != 0 || note[strlen(have)] != '\n')
            fail_msg("%s where the line is: %s", have, line);
        line = strchr(line, '\n') + 1;
    }
    facts_fini(&facts);
    kir_fini(&m);
    str_fini(&text);
}

static void test_arithmetic(void **state)
{
    (void)state;
    check_facts("phase 8\n", "%0 i32 = lane #1\n"
                             "%1 i32 = param 0 #u\n"
                             "%2 i32 = add %0 %1 #1\n"
                             "%3 i32 = const 3 #u\n"
                             "%4 i32 = mul %2 %3 #3\n"
                             "%5 i32 = sub %1 %4 #-3\n"
                             "%6 i32 = add %4 %5 #u\n"
                             "%7 i32 = shl %2 %3 #8\n"
                             "%8 i32 = neg %7 #-8\n"
                             "%9 i32 = mul %1 %0 #v\n"
                             "%10 i32 = udiv %0 %3 #v\n"
                             "%11 i32 = udiv %1 %3 #u\n"
                             "%12 i32 = xor %0 %3 #v\n"
                             "%13 i32 = const 0x20000000 #u\n"
                             "%14 i32 = mul %7 %13 #u\n"
                             "%15 i32 = mul %3 %2 #3\n"
                             "%16 i32 = shl %1 %0 #v\n"
                             "%17 f32 = f32 %0 #v\n"
                             "%18 f32 = f32 %1 #u\n"
                             "%19 f32 = add %18 %18 #u\n"
                             "%20 f32 = neg %17 #v\n"
                             "%21 i32 = i32 %17 #v\n"
                             "%22 b = lt %0 %1 #v\n"
                             "%23 b = lt %3 %1 #u\n"
                             "%24 i32 = select %2 %0 %23 #1\n"
                             "%25 i32 = select %2 %0 %22 #v\n"
                             "%26 i32 = select %2 %4 %23 #v\n"
                             "%27 i32 = first %25 #u\n"
                             "%28 i32 = exchange 1 %2 #v\n"
                             "%29 i32 = exchange 1 %1 #u\n"
                             "%30 i32 = shift 1 %0 #v\n");
    check_facts("phase 1\n", "%0 i32 = lane #u\n");
}

/* I64 only where the I32 value cannot have wrapped. */
static void test_conversions(void **state)
{
    (void)state;
    check_facts("phase 8\n", "%0 i32 = lane #1\n"
                             "%1 i64 = i64 %0 #1\n"
                             "%2 i32 = param 0 #u\n"
                             "%3 i32 = add %0 %2 #1\n"
                             "%4 i64 = i64 %3 #v\n"
                             "%5 i64 = i64 %2 #u\n"
                             "%6 i64 = add %1 %5 #1\n"
                             "%7 i32 = i32 %6 #1\n"
                             "%8 i32 = const 0x10000000 #u\n"
                             "%9 i32 = mul %0 %8 #268435456\n"
                             "%10 i64 = i64 %9 #268435456\n"
                             "%11 i32 = add %9 %8 #268435456\n"
                             "%12 i64 = i64 %11 #v\n"
                             "%13 i32 = neg %0 #-1\n"
                             "%14 i64 = i64 %13 #-1\n"
                             "%15 i64 = u64 %13 #v\n"
                             "%16 i32 = const 7 #u\n"
                             "%17 i32 = sub %16 %0 #-1\n"
                             "%18 i64 = u64 %17 #-1\n"
                             "%19 i32 = const 6 #u\n"
                             "%20 i32 = sub %19 %0 #-1\n"
                             "%21 i64 = u64 %20 #v\n"
                             "%22 i64 = i64 %8 #u\n"
                             "%23 i64 = mul %1 %22 #268435456\n"
                             "%24 i64 = const 0x100000000 #u\n"
                             "%25 i64 = mul %1 %24 #4294967296\n"
                             "%26 i32 = i32 %25 #u\n"
                             "%27 b = eq %0 %2 #v\n"
                             "%28 i32 = i32 %27 #v\n");
}

static void test_memory(void **state)
{
    (void)state;
    check_facts("phase 8\ntile t0 group i32 8\ntile t1 lane i32 8\n",
                "%0 i32 = lane #1\n"
                "%1 i32 = group 2 #u\n"
                "%2 i32 = load a0 %1 #u\n"
                "%3 i32 = load a0 %0 #v\n"
                "%4 b = lt %1 %2 #u\n"
                "%5 i32 = load_if a0 %1 %4 %2 #u\n"
                "%6 i32 = load_if a0 %1 %4 %0 #v\n"
                "%7 i32 = tload t0 %1 #u\n"
                "%8 i32 = tload t0 %0 #v\n"
                "%9 i32 = tload t1 %1 #v\n"
                "tstore t1 %1 %0 #u\n"
                "barrier #u\n");
}

static void test_loops(void **state)
{
    (void)state;
    check_facts("phase 8\n", "%0 i32 = lane #1\n"
                             "%1 i32 = param 0 #u\n"
                             "%2 i32 = const 0 #u\n"
                             "%3 i32 = const 8 #u\n"
                             "%4 i32 = for %2 to %1 step 1 #u\n"
                             "%5 i32 = phi 0 %0 #1\n"
                             "%6 i32 = phi 1 %2 #v\n"
                             "%7 i32 = phi 2 %2 #u\n"
                             "%8 i32 = phi 3 %0 #v\n"
                             "%9 i32 = add %5 %3 #1\n"
                             "%10 i32 = add %6 %0 #v\n"
                             "%11 i32 = add %4 %0 #1\n"
                             "next %9 %10 %4 %2 #u\n"
                             "%13 i32 = add %5 %7 #1\n"
                             "%14 i64 = i64 %5 #v\n");
    /* What the inner loop makes of the outer phi comes back to it. */
    check_facts("phase 8\n", "%0 i32 = lane #1\n"
                             "%1 i32 = const 0 #u\n"
                             "%2 i32 = for %1 to %1 step 1 #u\n"
                             "%3 i32 = phi 0 %1 #v\n"
                             "%4 i32 = for %1 to %1 step 1 #u\n"
                             "%5 i32 = phi 0 %3 #v\n"
                             "%6 i32 = add %5 %0 #v\n"
                             "next %6 #u\n"
                             "next %5 #u\n"
                             "%9 i32 = sub %3 %3 #v\n");
}

/* A butterfly makes longer runs with each step; what is not a sum of both sides makes none. */
static void test_runs(void **state)
{
    static const char text[] = "kernel k\narg a0 f32 read\nphase 16\n"
                               "%0 i32 = lane\n"
                               "%1 f32 = load a0 %0\n"
                               "%2 f32 = exchange 1 %1\n"
                               "%3 f32 = add %1 %2\n"
                               "%4 f32 = exchange 2 %3\n"
                               "%5 f32 = fmax %4 %3\n"
                               "%6 f32 = exchange 8 %5\n"
                               "%7 f32 = add %5 %6\n"
                               "%8 f32 = exchange 2 %5\n"
                               "%9 f32 = sub %3 %4\n"
                               "%10 f32 = add %5 %3\n"
                               "%11 f32 = first %1\n"
                               "%12 f32 = shift 1 %5\n";
    static const uint32_t same[] = {1, 1, 1, 2, 2, 4, 4, 4, 4, 2, 2, 16, 1};
    struct facts facts;
    struct kir_module m;
    frit_err err = ERR_INIT;

    (void)state;
    if (kir_parse(text, sizeof(text) - 1, &m, &err))
        fail_msg("%s", err.text);
    assert_int_equal(facts_init(&facts, &m, 0, NULL), FRIT_OK);
    assert_int_equal(facts.n, sizeof(same) / sizeof(same[0]));
    for (uint32_t i = 0; i < facts.n; i++)
        assert_int_equal(facts.of[i].same, same[i]);
    facts_fini(&facts);
    kir_fini(&m);
}

/* A group as a grid: low and high bits of the lane. */
static void test_grid(void **state)
{
    static const char text[] = "kernel k\nparams 1\narg a0 f32 read\nphase 16\n"
                               "%0 i32 = lane\n"
                               "%1 i32 = const 3\n"
                               "%2 i32 = and %0 %1\n"
                               "%3 i32 = const 2\n"
                               "%4 i32 = shr %0 %3\n"
                               "%5 i32 = param 0\n"
                               "%6 i32 = mul %4 %5\n"
                               "%7 i32 = add %6 %2\n"
                               "%8 i32 = add %5 %7\n"
                               "%9 i32 = and %0 %3\n"
                               "%10 f32 = load a0 %6\n"
                               "%11 i32 = mul %2 %5\n"
                               "%12 i32 = shr %8 %3\n";
    static const uint32_t same[] = {1, 16, 1, 16, 4, 16, 4, 1, 1, 1, 4, 1, 1};
    static const uint32_t run[] = {16, 16, 4, 16, 4, 16, 4, 4, 4, 1, 4, 1, 1};
    static const int64_t stride[] = {1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0};
    struct facts facts;
    struct kir_module m;
    frit_err err = ERR_INIT;

    (void)state;
    if (kir_parse(text, sizeof(text) - 1, &m, &err))
        fail_msg("%s", err.text);
    assert_int_equal(facts_init(&facts, &m, 0, NULL), FRIT_OK);
    assert_int_equal(facts.n, sizeof(same) / sizeof(same[0]));
    for (uint32_t i = 0; i < facts.n; i++) {
        assert_int_equal(facts.of[i].same, same[i]);
        assert_int_equal(facts.of[i].run, run[i]);
        assert_int_equal(facts.of[i].run_stride, stride[i]);
    }
    facts_fini(&facts);
    kir_fini(&m);
}

/* ---- random modules ---- */

enum { LANES = 8, VALUES = 60, ROUNDS = 3000 };

static uint32_t next_random(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

struct made {
    uint32_t kept[VALUES];     /* per slot of argument 0: the value that is stored there */
    uint32_t value[VALUES], n; /* that may be used here */
    uint32_t seed;
};

/* Stores a value to its slot of argument 0, as I64. */
static void keep(struct kir_module *m, struct made *made, uint32_t value, uint32_t slot)
{
    uint32_t at = OP2(m, add, OP0(m, lane), rig_int(m, (int32_t)(slot * LANES)));
    uint32_t wide = kir_type_at(m, value) == KIR_I32 ? OP1(m, i64, value) : value;

    rig_store(m, 0, at, wide);
    made->kept[slot] = value;
    made->value[made->n++] = value;
}

/* A value of the type among those that may be used; one of the first four always fits. */
static uint32_t pick(struct kir_module *m, struct made *made, uint32_t n, enum kir_type type)
{
    for (;;) {
        uint32_t value = made->value[next_random(&made->seed, n)];

        if (kir_type_at(m, value) == type)
            return value;
    }
}

static uint32_t random_value(struct kir_module *m, struct made *made, uint32_t n)
{
    static const enum kir_op ops[] = {KIR_add,  KIR_sub, KIR_mul,  KIR_shl,    KIR_neg,
                                      KIR_xor,  KIR_and, KIR_udiv, KIR_select, KIR_first,
                                      KIR_smin, KIR_add, KIR_shr,  KIR_and,    KIR_exchange};
    enum kir_type type = next_random(&made->seed, 2) ? KIR_I32 : KIR_I64;
    enum kir_type other = type == KIR_I32 ? KIR_I64 : KIR_I32;
    enum kir_op op = ops[next_random(&made->seed, sizeof(ops) / sizeof(ops[0]))];
    uint32_t a = pick(m, made, n, type), b = pick(m, made, n, type);

    switch (next_random(&made->seed, 6)) {
    case 5: /* as lanes are brought together */
        b = kir_emit_imm(m, KIR_exchange, 1u << next_random(&made->seed, 3), a, KIR_NONE, KIR_NONE);
        op = next_random(&made->seed, 2) ? KIR_add : KIR_sub;
        return next_random(&made->seed, 2) ? OP2(m, smax, b, a) : kir_emit(m, op, a, b, KIR_NONE);
    case 0:
        return kir_const_i(m, type, (int64_t)next_random(&made->seed, 40) - 20);
    case 1:
        a = pick(m, made, n, other);
        op = type == KIR_I32 ? KIR_i32 : next_random(&made->seed, 2) ? KIR_i64 : KIR_u64;
        return kir_emit(m, op, a, KIR_NONE, KIR_NONE);
    default:
        if (op == KIR_select)
            return OP3(m, select, a, b,
                       OP2(m, lt, pick(m, made, n, other), pick(m, made, n, other)));
        return kir_emit_imm(m, op, op == KIR_exchange ? 2 : 0, a,
                            kir_op_info(op)->n == 2 ? b : KIR_NONE, KIR_NONE);
    }
}

static void make_random(struct kir_module *m, struct made *made)
{
    uint32_t begin, phi[2], next[2], outside;

    kir_init(m, "random");
    kir_arg(m, FRIT_I64, KIR_WRITE);
    kir_phase(m, LANES);
    keep(m, made, OP0(m, lane), 0);
    keep(m, made, OP1(m, i64, made->value[0]), 1);
    keep(m, made, kir_param(m, KIR_I32), 2);
    keep(m, made, kir_param(m, KIR_I64), 3);
    while (made->n < 20)
        keep(m, made, random_value(m, made, made->n), made->n);
    outside = made->n;
    begin = rig_int(m, 0);
    kir_for(m, begin, rig_int(m, 1 + (int32_t)next_random(&made->seed, 3)), 1);
    phi[0] = kir_phi(m, pick(m, made, outside, KIR_I32));
    phi[1] = kir_phi(m, pick(m, made, outside, KIR_I64));
    keep(m, made, phi[0], made->n);
    keep(m, made, phi[1], made->n);
    while (made->n < 40)
        keep(m, made, random_value(m, made, made->n), made->n);
    next[0] = pick(m, made, made->n, KIR_I32);
    next[1] = pick(m, made, made->n, KIR_I64);
    kir_next(m, next, 2);
    /* Of the loop only the phis are seen from here on. */
    made->n = outside + 2;
    keep(m, made, phi[0], 40);
    keep(m, made, phi[1], 41);
    for (uint32_t slot = 42; slot < VALUES; slot++)
        keep(m, made, random_value(m, made, made->n), slot);
}

static void check_value(const struct fact *fact, enum kir_type type, const int64_t *lanes)
{
    for (int64_t i = 0; i < LANES; i++) {
        uint64_t want = (uint64_t)lanes[0] + (uint64_t)i * (uint64_t)fact->stride;

        if (type == KIR_I32)
            want = (uint64_t)(int64_t)(int32_t)(uint32_t)want;
        if (fact->kind != FACT_VARYING)
            assert_int_equal(lanes[i], want);
        assert_int_equal(lanes[i], lanes[i & ~((int64_t)fact->same - 1)]);
        want = (uint64_t)lanes[i & ~((int64_t)fact->run - 1)] +
               (uint64_t)(i & ((int64_t)fact->run - 1)) * (uint64_t)fact->run_stride;
        if (type == KIR_I32)
            want = (uint64_t)(int64_t)(int32_t)(uint32_t)want;
        assert_int_equal(lanes[i], want);
    }
}

static void test_random(void **state)
{
    static int64_t out[VALUES][LANES];
    static const uint32_t grid[1][3] = {{1, 1, 1}};
    struct eval_arg args[] = {RIG_ARRAY(out)};
    uint32_t linear = 0, runs = 0;

    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct made made = {.seed = round};
        uint64_t words[2];
        struct facts facts;
        struct kir_module m;
        frit_err err = ERR_INIT;

        make_random(&m, &made);
        words[0] = next_random(&made.seed, 2) ? INT32_MAX - next_random(&made.seed, 9)
                                              : next_random(&made.seed, 99);
        words[1] = words[0] << next_random(&made.seed, 40);
        if (eval_run(&m, words, args, grid, &err))
            fail_msg("%s", err.text);
        assert_int_equal(facts_init(&facts, &m, 0, NULL), FRIT_OK);
        for (uint32_t i = 0; i < VALUES; i++) {
            const struct fact *fact = &facts.of[made.kept[i]];

            check_value(fact, kir_type_at(&m, made.kept[i]), out[i]);
            linear += fact->kind == FACT_LINEAR;
            runs += fact->kind == FACT_VARYING && fact->same > 1;
        }
        facts_fini(&facts);
        kir_fini(&m);
    }
    assert_true(linear > ROUNDS && runs > ROUNDS); /* facts that say nothing would pass, too */
}

/* ---- the rest ---- */

static void test_divisions(void **state)
{
    static const char text[] = "kernel k\n"
                               "phase 4\n"
                               "%0 i32 = lane\n"
                               "%1 i32 = const 9\n"
                               "%2 i32 = udiv %0 %1\n"
                               "%3 i32 = for %1 to %1 step 1\n"
                               "%4 i32 = mulhi %3 %1\n"
                               "%5 i32 = srem %3 %1\n"
                               "%6 b = lt %3 %1\n"
                               "if %6\n"
                               "%8 i32 = urem %3 %1\n"
                               "end\n"
                               "next\n"
                               "%11 i32 = for %1 to %1 step 1\n"
                               "%12 i32 = sdiv %11 %1\n"
                               "next\n"
                               "phase 4\n"
                               "%0 i32 = lane\n"
                               "%1 i32 = udiv %0 %0\n"
                               "%2 f32 = f32 %1\n"
                               "%3 f32 = div %2 %2\n";
    struct kir_module m;
    frit_err err = ERR_INIT;

    (void)state;
    if (kir_parse(text, strlen(text), &m, &err))
        fail_msg("%s", err.text);
    assert_int_equal(facts_divisions(&m), 5);
    kir_fini(&m);
}

static void test_no_memory(void **state)
{
    struct kir_module m;
    struct facts facts;

    (void)state;
    rig_row_sum(&m);
    for (long n = 0, hit = 1; hit; n++) {
        frit_status st;

        failing_alloc_arm(n);
        st = facts_init(&facts, &m, 0, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        assert_true(hit == !facts.of);
        facts_fini(&facts);
    }
    kir_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_runs),
        cmocka_unit_test(test_grid),       cmocka_unit_test(test_loops),
        cmocka_unit_test(test_random),     cmocka_unit_test(test_divisions),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
