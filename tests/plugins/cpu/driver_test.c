/* SPDX-License-Identifier: Apache-2.0 */
/* The built plugin through its tables alone: its device, its options, its memory, and a launch with
 * and without threads. */
#include <stdio.h>
#include <string.h>

#include <frit/fuser.h>
#include <frit/op_table.h>

#include "plugins/rig.h"

enum { ITEMS = 100003, LARGE = 2 << 20 };

static int open_rig(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);

    assert_non_null(rig);
    rig->threads = 3;
    rig_open(rig);
    *state = rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    free(*state);
    return 0;
}

/* ---- the device ---- */

static frit_device_info device_info(struct rig *rig)
{
    frit_device_info info = {.struct_size = sizeof info};
    frit_driver_info driver = {.struct_size = sizeof driver, .reason = 99};
    uint32_t count = 0;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err),
        FRIT_OK);
    assert_int_equal(count, 1);
    assert_int_equal(driver.reason, 0);
    return info;
}

static void one_device(void **state)
{
    struct rig *rig = *state;
    const frit_device_info info = device_info(rig);
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;
    void *other;

    assert_int_equal(info.type, FRIT_DEVICE_PROCESSOR);
    assert_true(info.heap.bytes > 0 && info.name.len > 0);
    assert_int_equal(info.dtype_use[FRIT_BF16], FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC);
    assert_int_equal(info.dtype_use[FRIT_Q4], 0);
    assert_int_equal(rig->backend->device_open(rig->instance, 1, &other, &rig->err), FRIT_INVALID);
    assert_null(other);
    assert_int_equal(rig->backend->enumerate(rig->instance, NULL, 0, 0, &count, &driver, &rig->err),
                     FRIT_OK);
    assert_int_equal(count, 1);
}

/* Compiled code of one instruction set is none of another's. */
static void instruction_sets(void **state)
{
    static const char *const sets[] = {"baseline", "avx2", "avx512"};
    char seen[3][64];
    int n = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rig rig = {.isa = sets[i]};
        frit_device_info info;
        frit_status status = rig_load(&rig);

        if (i > 0 && status) { /* a smaller machine */
            assert_int_equal(status, FRIT_UNSUPPORTED);
            assert_non_null(strstr(rig.err.text, sets[i]));
            assert_int_equal(rig.live, 0);
            continue;
        }
        assert_int_equal(status, FRIT_OK);
        rig.backend = rig.plugin->get_interface(rig.instance, FRIT_STR(FRIT_BACKEND));
        info = device_info(&rig);
        snprintf(seen[n], sizeof seen[n], "%.*s", (int)info.fingerprint.len, info.fingerprint.ptr);
        for (int k = 0; k < n; k++)
            assert_string_not_equal(seen[k], seen[n]);
        n++;
        rig.plugin->close(rig.instance);
    }
}

/* ---- memory ---- */

static void large_memory_begins_at_a_large_page(void **state)
{
    struct rig *rig = *state;
    frit_allocation allocations[3];

    for (int i = 0; i < 3; i++) {
        const frit_alloc_desc desc = {sizeof desc, 0, LARGE + (uint64_t)i * 100, 64};

        allocations[i].struct_size = sizeof allocations[i];
        assert_int_equal(rig->backend->alloc(rig->device, &desc, &allocations[i], &rig->err),
                         FRIT_OK);
        assert_int_equal(allocations[i].address % LARGE, 0);
        memset(allocations[i].host_pointer, 1, desc.bytes);
    }
    for (int i = 0; i < 3; i++)
        rig->backend->free(rig->device, allocations[i].memory);
}

/* ---- a launch: y = x + 3 of `dims` extents in a row ---- */

struct addition {
    struct rig *rig;
    frit_allocation x, y;
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
    frit_arg args[3]; /* the scalar keeps its place */
    uint64_t n;
};

static frit_allocation new_floats(struct rig *rig, uint64_t n)
{
    const frit_alloc_desc desc = {sizeof desc, 0, n * sizeof(float), 64};
    frit_allocation memory = {.struct_size = sizeof memory};

    assert_int_equal(rig->backend->alloc(rig->device, &desc, &memory, &rig->err), FRIT_OK);
    return memory;
}

static void make_program(struct addition *a)
{
    const frit_operand in[] = {
        {.kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = 0, .rank = 1, .extent = {2}},
        {.kind = FRIT_OPERAND_SCALAR, .dtype = FRIT_F32}};
    const frit_operand out = {
        .kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = 1, .rank = 1, .extent = {2}};
    const frit_op_desc op = {.struct_size = FRIT_END_OF(frit_op_desc, dead),
                             .id = FRIT_OP_add,
                             .rev = frit_op_info_at(FRIT_OP_add)->rev,
                             .n_in = 2,
                             .n_out = 1,
                             .operand_stride = sizeof(frit_operand),
                             .in = in,
                             .out = &out};
    uint64_t bits = 0;

    assert_int_equal(
        a->rig->backend->supports(a->rig->device, &op, 1, sizeof op, &bits, &a->rig->err), FRIT_OK);
    assert_int_equal(bits, 1);
    a->program.struct_size = sizeof a->program;
    assert_int_equal(a->rig->backend->op_program(a->rig->device, &op, &a->program, &a->rig->err),
                     FRIT_OK);
}

static void prepare(struct addition *a)
{
    const uint8_t scalar_class = FRIT_SCALAR_CLASS_INTEGER;
    frit_arg_sig sigs[3] = {{0}};
    const frit_signature sig = {.struct_size = sizeof sig,
                                .n_in = 2,
                                .n_out = 1,
                                .arg_stride = sizeof *sigs,
                                .n_scalars = 1,
                                .index_width = 32,
                                .args = sigs,
                                .scalar_classes = &scalar_class};
    frit_status status;

    sigs[0] = (frit_arg_sig){.dtype = FRIT_F32, .rank = 1, .align_log2 = 6};
    sigs[0].dims[0] = (int64_t)a->n;
    sigs[0].strides[0] = 1;
    sigs[2] = sigs[0];
    a->spec.struct_size = sizeof a->spec;
    a->variant.struct_size = sizeof a->variant;
    status =
        a->program.table->prepare(a->program.self, 0, &sig, &a->spec, &a->variant, &a->rig->err);
    if (status == FRIT_PREPARE_NEEDS_COMPILE)
        status = a->program.table->compile(a->program.self, 0, &a->variant, NULL, &a->rig->err);
    assert_int_equal(status, FRIT_OK);
}

static void open_addition(struct addition *a, struct rig *rig, uint64_t n)
{
    memset(a, 0, sizeof *a);
    a->rig = rig;
    a->n = n;
    a->x = new_floats(rig, n);
    a->y = new_floats(rig, n);
    for (uint64_t i = 0; i < n; i++)
        ((float *)a->x.host_pointer)[i] = (float)(i % 1000);
    make_program(a);
    prepare(a);
    a->args[0] = (frit_arg){.memory = a->x.memory,
                            .extent = n * sizeof(float),
                            .dtype = FRIT_F32,
                            .rank = 1,
                            .dims = {(int64_t)n},
                            .strides = {1}};
    a->args[2] = a->args[0];
    a->args[2].memory = a->y.memory;
}

static frit_status run_addition(struct addition *a, uint64_t *value)
{
    const double three = 3;
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};
    const frit_launch launch = {.struct_size = sizeof launch,
                                .n_args = 3,
                                .arg_stride = sizeof *a->args,
                                .n_scalars = 1,
                                .cookie = 77,
                                .program = &a->program,
                                .spec = &a->spec,
                                .variant = &a->variant,
                                .args = a->args,
                                .scalars = &scalar};
    const frit_cmd cmd = {.struct_size = sizeof cmd, .kind = FRIT_CMD_LAUNCH, .launch = &launch};

    memcpy(&scalar.bits, &three, sizeof three);
    return a->rig->backend->submit(a->rig->device, &cmd, 1, sizeof cmd, NULL, 0, value,
                                   &a->rig->err);
}

static void close_addition(struct addition *a)
{
    a->program.table->destroy(a->program.self);
    a->rig->backend->free(a->rig->device, a->x.memory);
    a->rig->backend->free(a->rig->device, a->y.memory);
}

/* Large ones are split, small ones are not worth it. */
static void launches(void **state)
{
    static const uint64_t sizes[] = {1, 7, 512, 513, ITEMS, 4 << 20};
    struct rig *rig = *state;

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct addition a;
        const float *y;
        uint64_t value;

        open_addition(&a, rig, sizes[k]);
        rig->n_split = 0;
        assert_int_equal(run_addition(&a, &value), FRIT_OK);
        assert_int_equal(rig->n_split, sizes[k] >= ITEMS);
        y = a.y.host_pointer;
        for (uint64_t i = 0; i < a.n; i++)
            assert_true(y[i] == (float)(i % 1000) + 3);
        close_addition(&a);
    }
}

static void without_threads(void **state)
{
    struct rig rig = {.threads = 0};
    struct addition a;
    uint64_t value;

    (void)state;
    rig_open(&rig);
    open_addition(&a, &rig, 4 << 20);
    assert_int_equal(run_addition(&a, &value), FRIT_OK);
    assert_true(((const float *)a.y.host_pointer)[a.n - 1] == (float)((a.n - 1) % 1000) + 3);
    close_addition(&a);
    rig_close(&rig);
}

static void what_cannot_be_launched(void **state)
{
    struct addition a;
    frit_program_table other;
    const frit_program_table *table;
    uint64_t value;

    open_addition(&a, *state, 100);
    a.args[2].extent++;
    assert_int_equal(run_addition(&a, &value), FRIT_INVALID);
    a.args[2].extent--;
    table = a.program.table;
    other = *table;
    a.program.table = &other;
    assert_int_equal(run_addition(&a, &value), FRIT_INVALID);
    assert_non_null(strstr(a.rig->err.text, "another driver"));
    a.program.table = table;
    assert_int_equal(run_addition(&a, &value), FRIT_OK);
    close_addition(&a);
}

/* Taken by submit, failed on the way: the timeline tells it. */
static void no_memory_for_a_launch(void **state)
{
    struct rig *rig = *state;
    frit_failure failure = {.struct_size = sizeof failure};
    struct addition a;
    uint64_t value = 0;

    open_addition(&a, rig, 100);
    rig->refuse_memory = true;
    assert_int_equal(run_addition(&a, &value), FRIT_OK);
    rig->refuse_memory = false;
    assert_int_equal(rig->backend->wait(rig->device, value, 0, &failure, &rig->err), FRIT_OK);
    assert_int_equal(failure.status, FRIT_NO_HOST_MEMORY);
    assert_int_equal(failure.cookie, 77);
    assert_int_equal(run_addition(&a, &value), FRIT_OK);
    failure = (frit_failure){.struct_size = sizeof failure, .value = value - 1};
    assert_int_equal(rig->backend->wait(rig->device, value, 0, &failure, &rig->err), FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    assert_true(((const float *)a.y.host_pointer)[99] == 102);
    close_addition(&a);
}

/* ---- fusers ---- */

static void fusers_are_for_this_device(void **state)
{
    struct rig *rig = *state;
    const frit_fuser_table *table =
        rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_FUSER_TABLE));
    frit_fuser_device device = {
        .struct_size = sizeof device, .same_plugin = 0, .device = rig->device};
    frit_fuser fusers[16] = {{0}};
    uint32_t count = 99;

    assert_non_null(table);
    assert_int_equal(
        table->prototypes(rig->instance, &device, fusers, sizeof *fusers, 16, &count, &rig->err),
        FRIT_OK);
    assert_int_equal(count, 0);
    device.same_plugin = 1;
    assert_int_equal(
        table->prototypes(rig->instance, &device, fusers, sizeof *fusers, 16, &count, &rig->err),
        FRIT_OK);
    assert_true(count > 0 && count <= 16);
    for (uint32_t i = 0; i < count; i++)
        table->destroy(fusers[i].prototype);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device),
        cmocka_unit_test(instruction_sets),
        cmocka_unit_test(large_memory_begins_at_a_large_page),
        cmocka_unit_test(launches),
        cmocka_unit_test(without_threads),
        cmocka_unit_test(what_cannot_be_launched),
        cmocka_unit_test_setup_teardown(no_memory_for_a_launch, open_rig, close_rig),
        cmocka_unit_test(fusers_are_for_this_device),
    };

    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
