/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with long phases, which have a text each: how they are divided, and that all phases run.
 */
#include <string.h>

#include "hip/buffer.h"
#include "hip/compile.h"
#include "hip/device.h"
#include "hip/launch.h"
#include "hip/parts.h"
#include "hip/queue.h"
#include "hip/scope.h"
#include "ir/digest.h"

#include "fake.h"
#include "rig.h"

enum { LANES = 128, LONG = 1200, SHORT = 10 };

/* ---- the division ---- */

static void divide(const uint32_t *lengths, uint32_t n, struct parts *out)
{
    struct kir_phase phases[8] = {0};
    const struct kir_module module = {.phases = phases, .n_phases = n};

    for (uint32_t i = 0; i < n; i++)
        phases[i].n = lengths[i];
    parts_divide(&module, out);
    for (uint32_t i = 0, first = 0; i < out->n; first += out->list[i++].n)
        assert_int_equal(out->list[i].first, first);
}

static void test_division(void **state)
{
    static const struct {
        uint32_t lengths[6], n, parts[MOST_PARTS];
    } cases[] = {
        {{SHORT}, 1, {1}},
        {{LONG}, 1, {1}},
        {{SHORT, SHORT, SHORT}, 3, {3}},
        {{LONG, SHORT}, 2, {2}},
        {{LONG, LONG}, 2, {1, 1}},
        {{SHORT, LONG, SHORT, LONG}, 4, {3, 1}},
        {{LONG, LONG, LONG, LONG, LONG, LONG}, 6, {1, 1, 1, 3}},
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct parts parts;
        uint32_t n = 0;

        divide(cases[k].lengths, cases[k].n, &parts);
        while (n < MOST_PARTS && cases[k].parts[n])
            n++;
        assert_int_equal(parts.n, n);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(parts.list[i].n, cases[k].parts[i]);
    }
}

/* ---- compiled ---- */

/* A phase that adds 1 to each lane's element, `n` times. */
static void add_phase(struct kir_module *m, uint32_t n)
{
    uint32_t at, x;

    kir_phase(m, LANES);
    at = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    x = kir_emit_as(m, KIR_load, KIR_F32, 0, at, KIR_NONE, KIR_NONE);
    for (uint32_t i = 0; i < n; i++)
        x = kir_binary(m, KIR_add, x, kir_const_f(m, KIR_F32, 1));
    kir_emit_imm(m, KIR_store, 0, at, x, KIR_NONE);
}

static struct kernel_code *compile(struct rig *rig)
{
    struct device *device = rig->device;
    struct kir_module module;
    uint8_t digest[KIR_DIGEST];
    void *code = NULL;

    kir_init(&module, "long");
    kir_arg(&module, FRIT_F32, KIR_READ | KIR_WRITE);
    add_phase(&module, LONG);
    add_phase(&module, SHORT);
    add_phase(&module, LONG);
    assert_false(module.failed);
    kir_digest(&module, digest);
    if (device->kernels.compile(device, &module, digest, NULL, &code, &rig->err))
        fail_msg("%s", rig->err.text);
    return code;
}

static void run(struct rig *rig, struct kernel_code *code, frit_memory *memory)
{
    static const uint32_t grid[3][3] = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
    struct device *device = rig->device;
    const struct launch_target target = {device, device->queues[0]->stream};
    const struct kernels_launch launch = {.code = code, .n_phases = 3, .grid = grid};
    const struct code_form *form;
    struct scope scope;

    assert_int_equal(scope_enter(device, &scope, &rig->err), FRIT_OK);
    assert_int_equal(compile_form(device, code, FORM_ALIGNED, &form, &rig->err), FRIT_OK);
    assert_int_equal(launch_phases(&target, &launch, form, &memory->address, 1, &rig->err),
                     FRIT_OK);
    assert_int_equal(device->api->StreamSynchronize(target.stream), 0);
    scope_leave(device, &scope);
}

/* Compiled, and then found in the host's disk cache. */
static void test_all_phases_run(void **state)
{
    const float zero[LANES] = {0};
    struct rig rig = {0};
    frit_allocation memory;

    (void)state;
    rig_open(&rig);
    memory = rig_alloc(&rig, sizeof zero);
    for (int k = 0; k < 2; k++) {
        struct device *device = rig.device;
        struct kernel_code *code = compile(&rig);
        float out[LANES];

        assert_true(code->forms[FORM_ALIGNED].modules[0] && code->forms[FORM_ALIGNED].modules[1]);
        assert_null(code->forms[FORM_ALIGNED].modules[2]);
        assert_int_equal(rig.puts, 1);
        rig_write(&rig, memory.memory, 0, zero, sizeof zero);
        run(&rig, code, memory.memory);
        rig_read(&rig, memory.memory, 0, out, sizeof out);
        for (uint32_t i = 0; i < LANES; i++)
            assert_true(out[i] == 2 * LONG + SHORT);
        device->kernels.release(device, code);
    }
    rig.backend->free(rig.device, memory.memory);
    rig_close(&rig);
    fake_expect_nothing_alive();
}

/* A part that does not compile fails the whole. */
static void test_a_part_fails(void **state)
{
    struct fake_gpu *compiler = fake_open_compiler();
    struct rig rig = {0};

    (void)state;
    rig_open(&rig);
    for (uint64_t call = 1;; call++) {
        struct device *device = rig.device;
        struct kir_module module;
        uint8_t digest[KIR_DIGEST] = {(uint8_t)call};
        void *code = NULL;
        frit_status status;

        kir_init(&module, "long");
        kir_arg(&module, FRIT_F32, KIR_READ | KIR_WRITE);
        add_phase(&module, LONG);
        add_phase(&module, LONG);
        compiler->failed_name = NULL;
        compiler->failing_result = 1;
        compiler->failing_call = compiler->calls + call;
        status = device->kernels.compile(device, &module, digest, NULL, &code, &rig.err);
        compiler->failing_call = 0;
        kir_fini(&module);
        if (!status)
            device->kernels.release(device, code);
        if (!compiler->failed_name)
            break;
        assert_true(status || strcmp(compiler->failed_name, "DestroyProgram") == 0 ||
                    strcmp(compiler->failed_name, "GetLogSize") == 0);
    }
    rig_close(&rig);
    fake_expect_nothing_alive();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_division),
        cmocka_unit_test(test_all_phases_run),
        cmocka_unit_test(test_a_part_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
