/* SPDX-License-Identifier: Apache-2.0 */
/* kit_open refuses a driver whose tables lack a function. */
#include <string.h>

#include "steps.h"

/* ---- code ---- */

static frit_status make_code(const struct kit_program *program, const frit_variant *variant,
                             const frit_cancel *cancel, void **code, frit_err *err)
{
    (void)program, (void)variant, (void)cancel, (void)code;
    return err->status;
}

static void end_code(const struct kit_program *program, void *code)
{
    (void)program, (void)code;
}

static void compilers_are_whole(void **state)
{
    static const struct kit_row row = {FRIT_OP_add, 1, KIT_COMPILED, NULL, NULL};
    static const struct kit_compiler compilers[] = {{.release = end_code}, {.compile = make_code}};
    struct kit_driver driver = {.name = FRIT_STR_INIT("lacking"), .rows = &row, .n_rows = 1};
    struct rig *rig = *state;
    const int64_t live = rig->live;
    void *none;

    driver.compiler = &compilers[0];
    assert_int_equal(kit_open(&driver, &rig->root, &none, &rig->err), FRIT_INTERNAL);
    assert_string_equal(rig->err.text,
                        "lacking: the struct kit_compiler has no function `compile`");
    driver.compiler = &compilers[1];
    assert_int_equal(kit_open(&driver, &rig->root, &none, &rig->err), FRIT_INTERNAL);
    assert_string_equal(rig->err.text,
                        "lacking: the struct kit_compiler has no function `release`");
    assert_int_equal(rig->live, live);
}

/* ---- programs ---- */

static frit_status own_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                              uint32_t stride, const frit_point *waits, uint32_t n_waits,
                              uint64_t *value, frit_err *err)
{
    (void)self, (void)queue, (void)cmds, (void)count, (void)stride, (void)waits, (void)n_waits,
        (void)value;
    return err->status;
}

/* Without a function a row is for a driver that brings a queue. */
static void somebody_runs_a_program(void **state)
{
    static const struct kit_row row = {FRIT_OP_add, KIT_TYPE(FRIT_F32), 0, NULL, NULL};
    static const frit_device_info info = {.name = FRIT_STR_INIT("device")};
    const struct kit_driver driver = {.name = FRIT_STR_INIT("lacking"),
                                      .devices = &info,
                                      .n_devices = 1,
                                      .rows = &row,
                                      .n_rows = 1};
    frit_program program = {.struct_size = sizeof program};
    struct rig *rig = *state;
    struct kit_instance *own;
    void *instance, *device;
    struct op op;
    int64_t live;

    assert_int_equal(kit_open(&driver, &rig->root, &instance, &rig->err), FRIT_OK);
    own = instance;
    assert_int_equal(own->backend.device_open(own, 0, &rig_params, &device, &rig->err), FRIT_OK);
    live = rig->live;
    op_of(&op, FRIT_OP_add, 1, 2, 3, 0);
    assert_int_equal(own->backend.op_program(device, &op.desc, &program, &rig->err), FRIT_INTERNAL);
    assert_string_equal(
        rig->err.text,
        "lacking: add has no function `run`, and the driver has no submit of its own");
    assert_int_equal(rig->live, live);
    own->backend.submit = own_submit;
    assert_int_equal(own->backend.op_program(device, &op.desc, &program, &rig->err), FRIT_OK);
    program.table->destroy(program.self);
    own->backend.device_close(device);
    kit_close(own);
}

static void own_free(void *self, frit_memory *memory)
{
    hosted_free(self, memory);
}

/* A driver whose memory is not the kit's does not adopt the application's. */
static void memory_of_its_own_is_not_adopted(void **state)
{
    static const frit_device_info info = {.name = FRIT_STR_INIT("device")};
    const struct kit_driver driver = {
        .name = FRIT_STR_INIT("lacking"), .devices = &info, .n_devices = 1};
    struct rig *rig = *state;
    const frit_backend *backend;
    struct kit_instance *own;
    void *instance;

    assert_int_equal(kit_open(&driver, &rig->root, &instance, &rig->err), FRIT_OK);
    own = instance;
    backend = kit_interface(own, FRIT_STR(FRIT_BACKEND));
    assert_non_null(backend->import_host);
    own->backend.free = own_free;
    backend = kit_interface(own, FRIT_STR(FRIT_BACKEND));
    assert_null(backend->import_host);
    kit_close(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(compilers_are_whole, steps_open, steps_close),
        cmocka_unit_test_setup_teardown(somebody_runs_a_program, steps_open, steps_close),
        cmocka_unit_test_setup_teardown(memory_of_its_own_is_not_adopted, steps_open, steps_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
