/* SPDX-License-Identifier: Apache-2.0 */
/* Without host memory everything fails cleanly, loses nothing, and works when tried again. */
#include "kernels/fuse/rig.h"

#include "failing_alloc.h"
#include "kernels/fuse/toy.h"

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

static void test_open(void **state)
{
    struct kernels_device device = ((struct rig *)*state)->device;

    failing_alloc_arm(0);
    assert_int_equal(kernels_open(&device, NULL), FRIT_NO_HOST_MEMORY);
    assert_true(failing_alloc_disarm());
    kernels_close(&device);
}

/* Prototypes, a clone of a fuser with ops in it, and its program. */
static frit_status fuse(struct rig *rig, const struct rig_ops *ops, frit_program *out)
{
    frit_fuser list[2] = {{0}};
    frit_fuser_state before = {.struct_size = sizeof(before)}, after = before;
    void *first = NULL, *second = NULL;
    uint32_t count;
    frit_status st;

    st = kernels_prototypes(&rig->device, list, sizeof(*list), 2, &count, NULL);
    if (st)
        return st;
    st = kernels_clone(list[0].prototype, &first, NULL);
    if (!st) {
        kernels_push(first, ops->op, ops->n, sizeof(*ops->op));
        kernels_state(first, &before);
        st = kernels_clone(first, &second, NULL);
        kernels_state(first, &after);
        assert_memory_equal(&before, &after, sizeof(before));
    }
    if (!st && before.accepted < ops->n) { /* push had no memory: that closes it */
        assert_false(before.open);
        st = FRIT_NO_HOST_MEMORY;
    }
    if (!st)
        st = kernels_finish(second, out, NULL);
    kernels_destroy(first);
    kernels_destroy(second);
    kernels_destroy(list[0].prototype);
    kernels_destroy(list[1].prototype);
    return st;
}

static void test_fusers(void **state)
{
    bool hit = true;
    struct rig_ops ops;

    rig_chain(&ops, 2);
    for (long n = 0; hit; n++) {
        frit_program program = {.struct_size = sizeof(program)};
        frit_status st;

        failing_alloc_arm(n);
        st = fuse(*state, &ops, &program);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        if (!st)
            rig_destroy(&program);
    }
}

static void test_ops(void **state)
{
    struct rig *rig = *state;
    struct rig_ops ops;
    bool hit = true;

    rig_chain(&ops, 2);
    for (long n = 0; hit; n++) {
        frit_program program = {.struct_size = sizeof(program)};
        frit_status st;

        failing_alloc_arm(n);
        st = kernels_op(&rig->device, &ops.op[0], &program, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        if (!st)
            rig_destroy(&program);
    }
}

static void test_supports(void **state)
{
    struct rig *rig = *state;
    struct rig_ops ops;
    bool hit = true;

    rig_chain(&ops, 2);
    for (long n = 0; hit; n++) {
        uint64_t bits = 4;
        frit_status st;

        failing_alloc_arm(n);
        st = kernels_supports(&rig->device, ops.op, 2, sizeof(*ops.op), &bits, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        assert_true(hit || bits == 3);
    }
}

/* Each failure leaves the program as it was. */
static void test_prepare(void **state)
{
    struct rig *rig = *state;
    const int64_t dims[] = {3, 5};
    struct rig_ops ops;
    struct rig_sig sig;
    frit_program program;
    bool hit = true;

    rig_chain(&ops, 2);
    program = rig_program(rig, "narrow", &ops);
    rig_signature(&sig, 2, 1, 1, 2, dims);
    for (long n = 0; hit; n++) {
        frit_launch_spec spec = {.struct_size = sizeof(spec)};
        frit_variant variant = {.struct_size = sizeof(variant)};
        frit_status st;

        failing_alloc_arm(n);
        st = program.table->prepare(program.self, 0, &sig.sig, &spec, &variant, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_PREPARE_NEEDS_COMPILE);
    }
    rig_destroy(&program);
}

static void test_load(void **state)
{
    struct rig *rig = *state;
    unsigned char bytes[1024];
    uint64_t n_bytes = sizeof(bytes);
    frit_program saved;
    struct rig_ops ops;
    bool hit = true;

    rig_chain(&ops, 2);
    saved = rig_program(rig, "narrow", &ops);
    assert_int_equal(saved.table->to_state(saved.self, bytes, &n_bytes, NULL), FRIT_OK);
    rig_destroy(&saved);
    for (long n = 0; hit; n++) {
        frit_program program = {.struct_size = sizeof(program)};
        frit_status st;

        failing_alloc_arm(n);
        st = kernels_from_state(&rig->device, ops.op, ops.n, sizeof(ops.op[0]), bytes, n_bytes,
                                &program, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(st, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        if (!st)
            rig_destroy(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_open, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fusers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ops, setup, teardown),
        cmocka_unit_test_setup_teardown(test_supports, setup, teardown),
        cmocka_unit_test_setup_teardown(test_prepare, setup, teardown),
        cmocka_unit_test_setup_teardown(test_load, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
