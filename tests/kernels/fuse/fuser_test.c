/* SPDX-License-Identifier: Apache-2.0 */
/* What abi/frit/fuser.h says of every fuser. */
#include "kernels/fuse/rig.h"

#include <string.h>

#include "kernels/fuse/toy.h"
#include "lower/rows/cost.h"

enum { NARROW, PAIRS, N_FUSERS };

struct fusers {
    struct rig rig;
    frit_fuser list[N_FUSERS];
};

static int setup(void **state)
{
    struct fusers *f = calloc(1, sizeof(*f));
    uint32_t count;

    assert_non_null(f);
    rig_init(&f->rig);
    assert_int_equal(
        kernels_prototypes(&f->rig.device, f->list, sizeof(*f->list), N_FUSERS, &count, NULL),
        FRIT_OK);
    assert_int_equal(count, N_FUSERS);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fusers *f = *state;

    for (uint32_t i = 0; i < N_FUSERS; i++)
        kernels_destroy(f->list[i].prototype);
    kernels_destroy(NULL);
    rig_fini(&f->rig);
    free(f);
    return 0;
}

static void *clone_of(const void *fuser)
{
    void *clone = NULL;

    assert_int_equal(kernels_clone(fuser, &clone, NULL), FRIT_OK);
    assert_non_null(clone);
    return clone;
}

static void push(void *fuser, const struct rig_ops *ops, uint32_t from, uint32_t to)
{
    kernels_push(fuser, ops->op + from, to - from, sizeof(*ops->op));
}

static void check_state(const void *fuser, bool open, uint32_t accepted, uint32_t quality)
{
    frit_fuser_state state = {.struct_size = sizeof(state)};

    kernels_state(fuser, &state);
    assert_int_equal(state.open, open);
    assert_int_equal(state.ready, accepted > 0);
    assert_int_equal(state.accepted, accepted);
    assert_int_equal(state.quality, quality);
}

static frit_program finish(void *fuser)
{
    frit_program program = {.struct_size = sizeof(program)};

    assert_int_equal(kernels_finish(fuser, &program, NULL), FRIT_OK);
    return program;
}

static uint32_t n_ops_of(const frit_program *program)
{
    frit_program_info info = {.struct_size = sizeof(info)};

    assert_int_equal(program->table->describe(program->self, &info, NULL), FRIT_OK);
    return info.n_ops;
}

/* One fuser per schedule, at the stride and into the room given. */
static void test_prototypes(void **state)
{
    struct fusers *f = *state;
    struct {
        frit_fuser fuser;
        uint64_t newer;
    } wide[N_FUSERS] = {{.newer = 7}, {.newer = 8}};
    uint32_t count = 0;

    assert_memory_equal(f->list[NARROW].name.ptr, "narrow", f->list[NARROW].name.len);
    assert_memory_equal(f->list[PAIRS].name.ptr, "pairs", f->list[PAIRS].name.len);
    assert_int_equal(
        kernels_prototypes(&f->rig.device, &wide->fuser, sizeof(*wide), 1, &count, NULL), FRIT_OK);
    assert_int_equal(count, N_FUSERS);
    assert_null(wide[1].fuser.prototype);
    kernels_destroy(wide[0].fuser.prototype);
    assert_int_equal(
        kernels_prototypes(&f->rig.device, &wide->fuser, sizeof(*wide), N_FUSERS, &count, NULL),
        FRIT_OK);
    assert_int_equal(wide[0].newer, 7);
    assert_int_equal(wide[1].newer, 8);
    assert_int_equal(wide[1].fuser.name.len, strlen("pairs"));
    assert_ptr_not_equal(wide[0].fuser.prototype, wide[1].fuser.prototype);
    kernels_destroy(wide[0].fuser.prototype);
    kernels_destroy(wide[1].fuser.prototype);
}

static void test_state_follows_pushes(void **state)
{
    struct fusers *f = *state;
    void *narrow = clone_of(f->list[NARROW].prototype);
    void *pairs = clone_of(f->list[PAIRS].prototype);
    struct rig_ops ops;

    rig_chain(&ops, 2);
    check_state(narrow, true, 0, 0);
    for (uint32_t i = 0; i < 3; i++) {
        push(narrow, &ops, i, i + 1);
        push(pairs, &ops, i, i + 1);
        check_state(narrow, true, i + 1, 900);
        check_state(pairs, true, i < 1 ? 0 : 2, i < 1 ? 0 : 500);
    }
    kernels_destroy(narrow);
    kernels_destroy(pairs);
}

/* An op that is not taken closes; what follows is ignored; reset brings back the beginning. */
static void test_foreign_op_closes(void **state)
{
    struct fusers *f = *state;
    void *fuser = clone_of(f->list[NARROW].prototype), *clone;
    struct rig_ops ops, foreign = {0};

    rig_chain(&ops, 2);
    rig_unary(&foreign, FRIT_OP_sqrt, rig_tensor(4, 2), rig_tensor(5, 2), NULL);
    push(fuser, &ops, 0, 2);
    push(fuser, &foreign, 0, 1);
    check_state(fuser, false, 2, 900);
    push(fuser, &ops, 2, 3);
    check_state(fuser, false, 2, 900);
    kernels_reset(fuser);
    check_state(fuser, true, 0, 0);
    push(fuser, &ops, 0, 3);
    check_state(fuser, true, 3, 900);
    kernels_reset(fuser);
    foreign.op[0].rev = 99;
    foreign.op[0].id = FRIT_OP_neg;
    rig_unary(&foreign, FRIT_OP_neg, rig_tensor(5, 2), rig_tensor(6, 2), NULL);
    push(fuser, &foreign, 0, 2);
    check_state(fuser, false, 0, 0);
    clone = clone_of(fuser);
    push(clone, &foreign, 1, 2);
    check_state(clone, false, 0, 0);
    kernels_destroy(clone);
    kernels_destroy(fuser);
}

/* A clone goes its own way, and outlives what it was cloned from. */
static void test_clone_is_deep(void **state)
{
    struct fusers *f = *state;
    void *first = clone_of(f->list[NARROW].prototype), *second;
    frit_program program;
    struct rig_ops ops;

    rig_chain(&ops, 2);
    push(first, &ops, 0, 2);
    second = clone_of(first);
    check_state(second, true, 2, 900);
    push(second, &ops, 2, 3);
    check_state(first, true, 2, 900);
    kernels_destroy(first);
    kernels_destroy(f->list[NARROW].prototype);
    f->list[NARROW].prototype = NULL;
    check_state(second, true, 3, 900);
    program = finish(second);
    assert_int_equal(n_ops_of(&program), 3);
    kernels_destroy(second);
    rig_destroy(&program);
}

/* The program covers what was accepted; a value that dies later is an output of it. */
static void test_finish_cuts(void **state)
{
    struct fusers *f = *state;
    void *fuser = clone_of(f->list[PAIRS].prototype);
    const int64_t dims[] = {3, 5};
    float x[15], y[15], out[15];
    const double scalar = 0.5;
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
    struct rig_launch launch;
    struct rig_ops ops;
    struct rig_sig sig;

    rig_chain(&ops, 2);
    push(fuser, &ops, 0, 3);
    program = finish(fuser);
    check_state(fuser, true, 2, 500);
    kernels_reset(fuser);
    check_state(fuser, true, 0, 0);
    kernels_destroy(fuser);
    assert_int_equal(n_ops_of(&program), 2);
    for (int i = 0; i < 15; i++) {
        x[i] = (float)i;
        y[i] = (float)(i % 4) - 1;
    }
    rig_signature(&sig, 2, 1, 1, 2, dims);
    rig_prepare(&program, &sig, &spec, &variant);
    rig_bind(&launch, &program, &spec, (float *[]){x, y, out}, 3, 15, &scalar, 1);
    rig_run(&launch);
    for (int i = 0; i < 15; i++)
        assert_float_equal(out[i], (x[i] + 0.5f) * y[i], 0);
    rig_destroy(&program);
}

/* Values that stay alive are outputs, of which a launch has a limited number. */
static void test_outputs_are_limited(void **state)
{
    struct fusers *f = *state;
    void *fuser = clone_of(f->list[NARROW].prototype);
    struct rig_ops ops;

    for (uint32_t i = 0; i < SCHED_OUTPUTS + 1; i++) {
        ops = (struct rig_ops){0};
        rig_unary(&ops, FRIT_OP_neg, rig_tensor(0, 1), rig_tensor(100 + i, 1), NULL);
        push(fuser, &ops, 0, 1);
        check_state(fuser, true, i < SCHED_OUTPUTS ? i + 1 : SCHED_OUTPUTS, 900);
    }
    ops = (struct rig_ops){0};
    rig_binary(&ops, FRIT_OP_add, rig_tensor(100, 1), rig_tensor(101, 1), rig_tensor(7, 1),
               RIG_DEAD(100, 101));
    push(fuser, &ops, 0, 1);
    check_state(fuser, true, SCHED_OUTPUTS + 2, 900);
    kernels_destroy(fuser);
}

/* -x, again and again, or so many ops beside each other. */
static void push_many(void *fuser, uint32_t n, uint32_t id, bool chain)
{
    for (uint32_t i = 0; i < n; i++) {
        struct rig_ops ops = {0};
        uint32_t x = chain ? i : 0;

        if (id == FRIT_OP_neg)
            rig_unary(&ops, id, rig_tensor(x, 1), rig_tensor(i + 1, 1), RIG_DEAD(x));
        else
            rig_binary(&ops, id, rig_tensor(x, 1), rig_tensor(x, 1), rig_tensor(i + 1, 1),
                       chain ? RIG_DEAD(x) : NULL);
        push(fuser, &ops, 0, 1);
    }
}

/* However many there are, a push costs the same. */
static void test_ops_are_looked_at_once(void **state)
{
    struct fusers *f = *state;
    void *fuser = clone_of(f->list[NARROW].prototype);

    toy_matches = 0;
    push_many(fuser, 500, FRIT_OP_neg, true);
    check_state(fuser, true, 500, 900);
    assert_int_equal(toy_matches, 500);
    kernels_destroy(fuser);
}

/* What a compiler gets is bounded, in instructions and in values that are alive at once. */
static void test_size_is_limited(void **state)
{
    struct fusers *f = *state;
    void *fuser = clone_of(f->list[NARROW].prototype);
    uint32_t most = 4096 / lower_cost(FRIT_OP_add);

    assert_true(most < 1000);
    push_many(fuser, 1000, FRIT_OP_add, true);
    check_state(fuser, false, most, 900);
    kernels_reset(fuser);
    push_many(fuser, MATCH_MAX_LIVE, FRIT_OP_add, false);
    check_state(fuser, true, SCHED_OUTPUTS, 900);
    kernels_reset(fuser);
    push_many(fuser, MATCH_MAX_LIVE + 1, FRIT_OP_add, false);
    check_state(fuser, false, SCHED_OUTPUTS, 900);
    kernels_destroy(fuser);
}

/* A type that the device does not compute with closes. */
static void test_types_of_the_device(void **state)
{
    struct fusers *f = *state;
    void *fuser = clone_of(f->list[NARROW].prototype);
    struct rig_ops ops = {0};

    for (uint32_t i = 0; i < 3; i++)
        rig_unary(&ops, FRIT_OP_neg, rig_tensor(i, 1), rig_tensor(i + 1, 1), NULL);
    ops.operand[1][1].dtype = ops.operand[2][0].dtype = ops.operand[2][1].dtype = FRIT_I64;
    push(fuser, &ops, 0, 3);
    check_state(fuser, true, 3, 900);
    kernels_reset(fuser);
    f->rig.device.target.i64 = false;
    push(fuser, &ops, 0, 3);
    check_state(fuser, false, 1, 900);
    kernels_destroy(fuser);
}

static void test_bindings_are_limited(void **state)
{
    struct fusers *f = *state;
    void *fuser = clone_of(f->list[NARROW].prototype);
    struct rig_ops ops = {0};

    f->rig.device.target.bindings = 3;
    rig_binary(&ops, FRIT_OP_add, rig_tensor(0, 1), rig_tensor(1, 1), rig_tensor(2, 1), NULL);
    rig_binary(&ops, FRIT_OP_add, rig_tensor(2, 1), rig_tensor(3, 1), rig_tensor(4, 1),
               RIG_DEAD(2, 3));
    push(fuser, &ops, 0, 1);
    check_state(fuser, true, 1, 900);
    push(fuser, &ops, 1, 2);
    check_state(fuser, true, 1, 900);
    kernels_destroy(fuser);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_prototypes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_state_follows_pushes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_op_closes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clone_is_deep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_finish_cuts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outputs_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bindings_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ops_are_looked_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_size_is_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(test_types_of_the_device, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
