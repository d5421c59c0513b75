/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that want the same code, or answers of the same program, at once. */
#include "kernels/fuse/rig.h"

#include <sched.h>
#include <string.h>

#include "fuse/codes.h"
#include "kernels/fuse/toy.h"

enum { THREADS = 4 };

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    toy_exact = false;
    rig_init(rig);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    rig_fini(*state);
    free(*state);
    return 0;
}

static struct code *take(struct rig *rig, double constant)
{
    struct kir_module module;
    struct code *code;

    kir_init(&module, "constant");
    kir_arg(&module, FRIT_F32, KIR_WRITE);
    kir_phase(&module, 1);
    kir_emit_imm(&module, KIR_store, 0, kir_const_i(&module, KIR_I32, 0),
                 kir_const_f(&module, KIR_F32, constant), KIR_NONE);
    assert_int_equal(codes_take(rig->device.codes, &module, &code, NULL), FRIT_OK);
    return code;
}

struct finder {
    pthread_t thread;
    struct code *code;
    const frit_cancel *cancel;
    atomic_int status;
};

static void *find_code(void *ctx)
{
    struct finder *finder = ctx;
    frit_err err = {.struct_size = sizeof(err)};

    atomic_store(&finder->status, code_compile(finder->code, finder->cancel, &err));
    return NULL;
}

static void start(struct finder *finder, struct code *code, const frit_cancel *cancel)
{
    finder->code = code;
    finder->cancel = cancel;
    atomic_store(&finder->status, INT32_MAX);
    assert_int_equal(pthread_create(&finder->thread, NULL, find_code, finder), 0);
}

static frit_status join(struct finder *finder)
{
    pthread_join(finder->thread, NULL);
    return atomic_load(&finder->status);
}

/* Equal modules are one code, others are not. */
static void test_one_per_module(void **state)
{
    struct rig *rig = *state;
    struct code *a = take(rig, 1), *b = take(rig, 1), *c = take(rig, 2);

    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_string_equal(code_name(a), "constant");
    code_unref(a);
    assert_int_equal(code_compile(b, NULL, NULL), FRIT_OK);
    code_unref(b);
    code_unref(c);
    assert_int_equal(atomic_load(&rig->n_compiles), 1);
    assert_int_equal(atomic_load(&rig->n_releases), 1);
}

static void test_many_wait_for_one(void **state)
{
    struct rig *rig = *state;
    struct code *code = take(rig, 1);
    struct finder finders[THREADS];

    atomic_store(&rig->held, true);
    for (int i = 0; i < THREADS; i++)
        start(&finders[i], code, NULL);
    rig_await_compiling(rig, 1);
    assert_null(code_compiled(code));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(atomic_load(&finders[i].status), INT32_MAX);
    atomic_store(&rig->held, false);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(join(&finders[i]), FRIT_OK);
    assert_int_equal(atomic_load(&rig->n_compiles), 1);
    assert_non_null(code_compiled(code));
    code_unref(code);
}

/* Who waited for a compile that failed tries for itself. */
static void test_failure_is_one_callers(void **state)
{
    struct rig *rig = *state;
    struct code *code = take(rig, 1);
    struct finder finders[THREADS];
    int failed = 0;

    atomic_store(&rig->held, true);
    atomic_store(&rig->fails, 1);
    for (int i = 0; i < THREADS; i++)
        start(&finders[i], code, NULL);
    rig_await_compiling(rig, 1);
    atomic_store(&rig->held, false);
    for (int i = 0; i < THREADS; i++)
        failed += join(&finders[i]) == FRIT_NO_DEVICE_MEMORY;
    assert_int_equal(failed, 1);
    assert_int_equal(atomic_load(&rig->n_compiles), 2);
    assert_non_null(code_compiled(code));
    code_unref(code);
}

/* Other code is compiled meanwhile. */
static void test_others_do_not_wait(void **state)
{
    struct rig *rig = *state;
    struct code *a = take(rig, 1), *b = take(rig, 2);
    struct finder first, second;

    atomic_store(&rig->held, true);
    start(&first, a, NULL);
    start(&second, b, NULL);
    rig_await_compiling(rig, 2);
    atomic_store(&rig->held, false);
    assert_int_equal(join(&first), FRIT_OK);
    assert_int_equal(join(&second), FRIT_OK);
    code_unref(a);
    code_unref(b);
}

static void test_waiting_is_cancelled(void **state)
{
    struct rig *rig = *state;
    frit_cancel cancel = {.struct_size = sizeof(cancel)};
    struct code *code = take(rig, 1);
    struct finder first, second;

    atomic_store(&rig->held, true);
    start(&first, code, NULL);
    rig_await_compiling(rig, 1);
    start(&second, code, &cancel);
    __atomic_store_n(&cancel.requested, 1, __ATOMIC_RELAXED);
    assert_int_equal(join(&second), FRIT_CANCELLED);
    assert_int_equal(atomic_load(&first.status), INT32_MAX);
    atomic_store(&rig->held, false);
    assert_int_equal(join(&first), FRIT_OK);
    assert_int_equal(atomic_load(&rig->n_compiles), 1);
    code_unref(code);
}

/* ---- programs ---- */

struct user {
    pthread_t thread;
    const frit_program *program;
    uint64_t driver; /* of the last spec */
};

/* Prepares, compiles and launches several sizes, as others do at the same time. */
static void *use(void *ctx)
{
    struct user *user = ctx;
    frit_program_info info = {.struct_size = sizeof(info)};
    const double scalar = 3;
    float x[64], y[64], out[64];

    for (int64_t n = 1; n <= 64; n++) {
        frit_launch_spec spec;
        frit_variant variant;
        struct rig_launch launch;
        struct rig_sig sig;

        for (int i = 0; i < 64; i++)
            x[i] = y[i] = (float)i;
        rig_signature(&sig, 2, 1, 1, 1, &n);
        rig_prepare(user->program, &sig, &spec, &variant);
        rig_bind(&launch, user->program, &spec, (float *[]){x, y, out}, 3, (uint64_t)n, &scalar, 1);
        rig_run(&launch);
        for (int i = 0; i < n; i++)
            assert_float_equal(out[i], -((x[i] + 3) * y[i]), 0);
        assert_int_equal(user->program->table->describe(user->program->self, &info, NULL), FRIT_OK);
        user->driver = spec.driver[0];
    }
    return NULL;
}

static void *prepare_once(void *ctx)
{
    struct user *user = ctx;
    const int64_t n = 9;
    frit_launch_spec spec = {.struct_size = sizeof(spec)};
    frit_variant variant = {.struct_size = sizeof(variant)};
    struct rig_sig sig;

    rig_signature(&sig, 2, 1, 1, 1, &n);
    assert_int_equal(
        user->program->table->prepare(user->program->self, 0, &sig.sig, &spec, &variant, NULL),
        FRIT_PREPARE_NEEDS_COMPILE);
    user->driver = spec.driver[0];
    return NULL;
}

/* Two threads lower the same at once: one of the answers is kept, and both get it. */
static void test_same_question_at_once(void **state)
{
    struct rig *rig = *state;
    struct user users[2];
    frit_program program;
    struct rig_ops ops;

    rig_chain(&ops, 1);
    program = rig_program(rig, "narrow", &ops);
    atomic_store(&toy_meet, atomic_load(&toy_builds) + 2);
    for (int i = 0; i < 2; i++) {
        users[i].program = &program;
        assert_int_equal(pthread_create(&users[i].thread, NULL, prepare_once, &users[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(users[i].thread, NULL);
    assert_true(users[0].driver != 0);
    assert_int_equal(users[0].driver, users[1].driver);
    rig_destroy(&program);
}

/* Two programs with equal modules, each used by two threads: one answer per size and program, one
 * code per size. */
static void test_programs_of_many_threads(void **state)
{
    struct rig *rig = *state;
    struct user users[THREADS];
    frit_program programs[2];
    struct rig_ops ops;

    toy_exact = true;
    rig_chain(&ops, 1);
    for (int i = 0; i < 2; i++)
        programs[i] = rig_program(rig, "narrow", &ops);
    for (int i = 0; i < THREADS; i++) {
        users[i].program = &programs[i % 2];
        assert_int_equal(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(users[i].thread, NULL);
    assert_int_equal(users[0].driver, users[2].driver);
    assert_int_equal(users[1].driver, users[3].driver);
    assert_int_equal(atomic_load(&rig->n_compiles), 64);
    for (int i = 0; i < 2; i++)
        rig_destroy(&programs[i]);
    assert_int_equal(atomic_load(&rig->n_releases), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_per_module, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_wait_for_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failure_is_one_callers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_do_not_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waiting_is_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_question_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_programs_of_many_threads, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
