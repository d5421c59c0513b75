/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that touch the same memory of arguments in one phase. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "failing_alloc.h"
#include "kernels/ir/rig.h"

/* Two I32 arguments, both read and written, and 4 lanes. */
static void begin(struct kir_module *m)
{
    kir_init(m, "test");
    kir_arg(m, FRIT_I32, KIR_READ | KIR_WRITE);
    kir_arg(m, FRIT_I32, KIR_READ | KIR_WRITE);
    kir_phase(m, 4);
}

/* Lane i of group g reads argument 0 at 4 g + i + from and writes it to argument 1 at 4 g + i. */
static void make_move(struct kir_module *m, int32_t from)
{
    uint32_t at;

    begin(m);
    at = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    at = OP2(m, add, OP2(m, mul, at, rig_int(m, 4)), OP0(m, lane));
    rig_store(m, 1, at, rig_load(m, KIR_I32, 0, OP2(m, add, at, rig_int(m, from))));
}

static void test_in_place(void **state)
{
    int32_t memory[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct eval_arg same[] = {RIG_ARRAY(memory), RIG_ARRAY(memory)};
    struct eval_arg apart[] = {{memory + 8, 0, 32}, {memory, 0, 32}};
    struct kir_module m;

    (void)state;
    make_move(&m, 0);
    rig_run(&m, NULL, same, 4);
    kir_fini(&m);
    /* Within a group all is read before it is written, but only in lockstep. */
    make_move(&m, 1);
    rig_run_bad(&m, NULL, same, 1,
                "phase 0, group (0, 0, 0), %8 store: lane 1 writes an element of argument 1 that "
                "lane 0 of group 0 read in this phase");
    kir_fini(&m);
    make_move(&m, 4);
    rig_run_bad(&m, NULL, same, 2,
                "phase 0, group (1, 0, 0), %8 store: lane 0 writes an element of argument 1 that "
                "lane 0 of group 0 read in this phase");
    kir_fini(&m);
    make_move(&m, 0);
    rig_run(&m, NULL, apart, 2);
    assert_int_equal(memory[0], 9);
    kir_fini(&m);
}

static void test_written(void **state)
{
    int32_t memory[8] = {0};
    struct eval_arg args[] = {RIG_ARRAY(memory), RIG_ARRAY(memory)};
    struct kir_module m;
    uint32_t lane, zero;

    (void)state;
    /* The same bits from all lanes are one store. */
    begin(&m);
    zero = rig_int(&m, 0);
    rig_store(&m, 0, zero, rig_int(&m, 5));
    rig_run(&m, NULL, args, 2);
    assert_int_equal(memory[0], 5);
    kir_fini(&m);
    /* So is what leaves memory as others read it. */
    begin(&m);
    zero = rig_int(&m, 0);
    rig_store(&m, 0, zero, rig_load(&m, KIR_I32, 1, zero));
    rig_run(&m, NULL, args, 1);
    kir_fini(&m);
    begin(&m);
    lane = OP0(&m, lane);
    rig_store(&m, 0, rig_int(&m, 0), lane);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %2 store: lane 1 writes an element of argument 0 that "
                "lane 0 of group 0 wrote otherwise in this phase");
    kir_fini(&m);
    /* A barrier is for tiles. */
    begin(&m);
    lane = OP0(&m, lane);
    rig_store(&m, 0, lane, lane);
    OP0(&m, barrier);
    rig_load(&m, KIR_I32, 1, OP2(&m, xor, lane, rig_int(&m, 1)));
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %5 load: lane 0 reads an element of argument 1 that "
                "lane 1 of group 0 wrote in this phase");
    kir_fini(&m);
    /* What a lane wrote itself it may read; the next phase reads all. */
    begin(&m);
    lane = OP0(&m, lane);
    rig_store(&m, 0, lane, lane);
    rig_store(&m, 1, OP2(&m, add, lane, rig_int(&m, 4)), rig_load(&m, KIR_I32, 1, lane));
    kir_phase(&m, 1);
    zero = rig_int(&m, 0);
    rig_store(&m, 0, zero, rig_load(&m, KIR_I32, 0, rig_int(&m, 6)));
    assert_int_equal(eval_run(&m, NULL, args, (const uint32_t[][3]){{1, 1, 1}, {1, 1, 1}}, NULL),
                     FRIT_OK);
    assert_int_equal(memory[0], 2);
    kir_fini(&m);
}

static void test_added(void **state)
{
    int32_t memory[4] = {0};
    struct eval_arg args[] = {RIG_ARRAY(memory), RIG_ARRAY(memory)};
    struct kir_module m;
    uint32_t lane, zero, all;

    (void)state;
    for (int what = 0; what < 4; what++) {
        static const char *const texts[] = {
            "phase 0, group (0, 0, 0), %4 load: lane 0 reads an element of argument 1 that others "
            "wrote in this phase",
            "phase 0, group (0, 0, 0), %4 store: lane 0 writes an element of argument 1 that "
            "others wrote otherwise in this phase",
            "phase 0, group (0, 0, 0), %4 atomic_add: lane 0 adds to an element of argument 0 that "
            "others read in this phase",
            "phase 0, group (0, 0, 0), %4 atomic_add: lane 0 adds to an element of argument 0 that "
            "others wrote in this phase",
        };

        begin(&m);
        lane = OP0(&m, lane);
        zero = rig_int(&m, 0);
        all = kir_const_b(&m, true);
        if (what == 2)
            rig_load(&m, KIR_I32, 1, zero);
        if (what == 3)
            rig_store(&m, 1, zero, zero);
        kir_emit_imm(&m, KIR_atomic_add, 0, zero, lane, all);
        if (what == 0)
            rig_load(&m, KIR_I32, 1, zero);
        if (what == 1)
            rig_store(&m, 1, zero, zero);
        memset(memory, 0, sizeof(memory));
        rig_run_bad(&m, NULL, args, 1, texts[what]);
        kir_fini(&m);
    }
}

/* Elements of different sizes over one piece of memory; half of one may be another's. */
static void test_sizes(void **state)
{
    int64_t memory[4] = {0};
    struct eval_arg args[] = {{memory + 1, 8, 24}, {(char *)memory + 9, 2, 2}};
    struct kir_module m;
    uint32_t at;

    (void)state;
    /* Bytes 7 to 10 are read, the first two by lane 0; lane 1 writes an element of 8. */
    for (int32_t element = -1; element < 2; element++) {
        kir_init(&m, "test");
        kir_arg(&m, FRIT_I64, KIR_WRITE);
        kir_arg(&m, FRIT_I16, KIR_READ);
        kir_phase(&m, 2);
        at = OP0(&m, lane);
        kir_emit_imm(&m, KIR_store_if, 0, rig_int(&m, element), kir_const_i(&m, KIR_I64, 7),
                     OP2(&m, eq, at, rig_int(&m, 1)));
        rig_load(&m, KIR_I32, 1, OP2(&m, sub, at, rig_int(&m, 1)));
        if (element == 1)
            rig_run(&m, NULL, args, 1);
        else
            rig_run_bad(&m, NULL, args, 1,
                        "phase 0, group (0, 0, 0), %8 load: lane 0 reads an element of argument 1 "
                        "that lane 1 of group 0 wrote in this phase");
        kir_fini(&m);
    }
}

/* Three arguments of which the last joins the others, in any order; the outermost elements too. */
static void test_joined(void **state)
{
    int32_t memory[12] = {0};
    struct eval_arg pieces[] = {{memory, 0, 20}, {memory + 7, 0, 20}, {memory + 3, 0, 24}};

    (void)state;
    for (uint32_t first = 0; first < 3; first++) {
        struct eval_arg args[] = {pieces[first], pieces[(first + 1) % 3], pieces[(first + 2) % 3]};
        struct kir_module m;
        uint32_t lane, front = (3 - first) % 3;
        char text[160];

        kir_init(&m, "test");
        for (int i = 0; i < 3; i++)
            kir_arg(&m, FRIT_I32, KIR_READ | KIR_WRITE);
        kir_phase(&m, 2);
        lane = OP0(&m, lane);
        for (uint32_t i = 0; i < 3; i++)
            rig_load(&m, KIR_I32, i, OP2(&m, mul, lane, rig_int(&m, 4)));
        rig_run(&m, NULL, args, 1);
        kir_emit_imm(&m, KIR_store_if, front, rig_int(&m, 3), rig_int(&m, 9),
                     OP2(&m, eq, lane, rig_int(&m, 1)));
        snprintf(text, sizeof(text),
                 "phase 0, group (0, 0, 0), %%14 store_if: lane 1 writes an element of argument %u "
                 "that lane 0 of group 0 read in this phase",
                 front);
        rig_run_bad(&m, NULL, args, 1, text);
        kir_fini(&m);
    }
}

static void test_memory(void **state)
{
    int32_t in[4] = {1, 2, 3, 4}, out[4];
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(out)};
    struct kir_module m;

    (void)state;
    make_move(&m, 0);
    for (long n = 0, hit = 1; hit; n++) {
        frit_status st;

        failing_alloc_arm(n);
        st = eval_run(&m, NULL, args, (const uint32_t[][3]){{1, 1, 1}}, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
    }
    kir_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_place), cmocka_unit_test(test_written),
        cmocka_unit_test(test_added),    cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_joined),   cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
