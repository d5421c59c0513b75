/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on cooperative matrices: its words, and on a device that multiplies matrices what eval
 * computes. */
#include "kernels/emit/spirv/rig.h"
#include "kernels/lower/rig.h"
#include "unit.h"

enum { MATRIX_LOAD = 4457, MATRIX_STORE = 4458, MATRIX_MULTIPLY = 4459 };

struct attention_case {
    uint32_t dtype;
    int64_t heads, queries, keys, size, outs;
    bool is_causal, is_turned, has_mask;
};

static const struct attention_case cases[] = {
    {FRIT_BF16, 2, 64, 64, 64, 64, true, false, false},
    {FRIT_F16, 1, 70, 150, 64, 64, true, true, false},
    {FRIT_BF16, 1, 33, 100, 40, 72, false, true, true},
    {FRIT_F16, 1, 20, 700, 128, 128, false, false, false},
};

static uint32_t operand(struct rig *rig, uint32_t dtype, int64_t heads, int64_t rows,
                        int64_t columns, bool is_turned)
{
    static const uint32_t orders[2][3] = {{0, 1, 2}, {1, 0, 2}};
    const int64_t dims[] = {heads, rows, columns};
    uint32_t value = rig_laid(rig, dtype, 3, dims, orders[is_turned], 0, 1);

    for (int64_t i = 0; i < heads * rows * columns; i++)
        rig_set_real(rig, value, i, (double)(i * 37 % 61 - 30) / 32);
    return value;
}

static void set_target(struct rig *rig, uint32_t dtype)
{
    rig->target.max_lanes = 2048;
    rig->target.align_bytes = 16;
    rig->target.group_bytes = 49152;
    rig->target.stages_tiles = true;
    rig->target.fma = false; /* the device's may round twice */
    rig->target.exp2 = dtype == FRIT_F16;
    rig->target.team = 32;
    rig->target.n_shapes = 1;
    rig->target.shapes[0] =
        (struct kir_fragment_shape){.m = 16, .n = 16, .k = 16, .dtype = dtype, .sum = FRIT_F32};
}

/* Values of it, the result last. */
static uint32_t make(struct rig *rig, const struct attention_case *c, uint32_t *values)
{
    const frit_attrs_attention attrs = {.struct_size = sizeof(attrs), .causal = c->is_causal};
    const int64_t dims[] = {c->heads, c->queries, c->outs}, seen[] = {c->queries, c->keys};
    uint32_t n = 3;

    rig_init(rig);
    set_target(rig, c->dtype);
    values[0] = operand(rig, c->dtype, c->heads, c->queries, c->size, c->is_turned);
    values[1] = operand(rig, c->dtype, c->heads, c->keys, c->size, c->is_turned);
    values[2] = operand(rig, c->dtype, c->heads, c->keys, c->outs, c->is_turned);
    if (c->has_mask) {
        values[n] = rig_input(rig, FRIT_BOOL, 2, seen);
        for (int64_t i = 0; i < c->queries * c->keys; i++)
            rig_set_int(rig, values[n], i, i * 7 % 5 == 0);
        n++;
    }
    values[n] = rig_op(
        rig, FRIT_OP_attention, 5,
        (struct rig_in[]){rig_value(values[0]), rig_value(values[1]), rig_value(values[2]),
                          rig_value(c->has_mask ? values[3] : RIG_ABSENT), rig_value(RIG_ABSENT)},
        &attrs, c->dtype, 3, dims);
    rig_run(rig, &sched_attention);
    return n + 1;
}

static void words_are_valid(void **state)
{
    struct spirv_target target = spirv_rich;
    struct spirv_code code;
    uint32_t values[5];
    struct rig rig;

    (void)state;
    target.matrices = target.matrices_f16 = target.matrices_bf16 = true;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        target.shares_tiles = i % 2;
        (void)make(&rig, &cases[i], values);
        spirv_rig_emit(&rig.module, 0, &target, true, &code);
        assert_int_equal(code.threads, 128);
        assert_true(code.shared_bytes <= 49152);
        assert_true(spirv_rig_count(&code, MATRIX_MULTIPLY) > 0);
        assert_true(spirv_rig_count(&code, MATRIX_STORE) > 0);
        spirv_fini(&code);
        rig_fini(&rig);
    }
}

static bool has_shape(const struct vulkan_rig *device, uint32_t dtype)
{
    uint32_t n;
    const struct kir_fragment_shape *shapes = vulkan_shapes(device, &n);

    for (uint32_t i = 0; i < n; i++)
        if (shapes[i].dtype == dtype && shapes[i].m == 16 && shapes[i].n == 16 && shapes[i].k == 16)
            return true;
    return false;
}

static void results_are_those_of_eval(void **state)
{
    struct vulkan_rig *device = vulkan_open();
    struct spirv_rig_arg args[8];
    uint32_t values[5], n;
    struct rig rig;

    (void)state;
    assert_non_null(device);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!has_shape(device, cases[i].dtype))
            continue;
        n = make(&rig, &cases[i], values);
        for (uint32_t k = 0; k < n; k++) {
            const struct rig_value *v = &rig.values[values[k]];

            args[k] = (struct spirv_rig_arg){v->data, frit_storage_bytes(v->dtype, v->elements)};
        }
        if (rig.module.n_phases == 1)
            spirv_rig_check(device,
                            &(struct spirv_rig_run){.module = &rig.module,
                                                    .words = rig.numbers.words,
                                                    .args = args,
                                                    .grid = (const uint32_t(*)[3])rig.numbers.grid,
                                                    .ulps = 2});
        rig_fini(&rig);
    }
    vulkan_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_valid),
                                       cmocka_unit_test(results_are_those_of_eval)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
