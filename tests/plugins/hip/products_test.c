/* SPDX-License-Identifier: Apache-2.0 */
/* Products by the vendor's library: submitted, recorded with operands that stay and that move,
 * refused and failing; and drivers without the library. */
#include <stdio.h>
#include <string.h>

#include <frit/capture.h>
#include <frit/op_table.h>

#include "fake.h"
#include "rig.h"

enum { ARGS = 4, MAX_BYTES = 1 << 15, X = 0, W, BIAS, Y };

static struct fake_gpu *runtime, *library;

/* ---- products ---- */

/* y = x w + bias, of f32. */
struct linear {
    int64_t m, n, k;
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
    bool is_reduced;    /* by the candidate with reduced products */
    uint32_t candidate; /* the library's; 0: there is none */
    frit_allocation memory[ARGS], workspace;
    frit_arg args[ARGS];
    frit_launch launch;
    frit_cmd cmd;
};

static void dims_of(const struct linear *l, int arg, uint32_t *rank, int64_t dims[2])
{
    const int64_t all[ARGS][2] = {{l->m, l->k}, {l->k, l->n}, {l->n, 1}, {l->m, l->n}};

    *rank = arg == BIAS ? 1 : 2;
    memcpy(dims, all[arg], sizeof all[arg]);
}

static frit_status make_program(struct rig *rig, struct linear *l)
{
    static const uint32_t extents[ARGS][2] = {{2, 4}, {4, 3}, {3, 0}, {2, 3}};
    frit_operand operands[ARGS];
    const frit_op_desc op = {.struct_size = FRIT_END_OF(frit_op_desc, dead),
                             .id = FRIT_OP_linear,
                             .rev = frit_op_info_at(FRIT_OP_linear)->rev,
                             .n_in = 3,
                             .n_out = 1,
                             .operand_stride = sizeof *operands,
                             .in = operands,
                             .out = operands + Y};

    for (uint32_t i = 0; i < ARGS; i++) {
        operands[i] = (frit_operand){
            .kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = i, .rank = i == BIAS ? 1 : 2};
        memcpy(operands[i].extent, extents[i], sizeof extents[i]);
    }
    l->program.struct_size = sizeof l->program;
    return rig->backend->op_program(rig->device, &op, &l->program, &rig->err);
}

/* The identity of a candidate of the library. */
static void write_identity(char to[64], bool is_reduced)
{
    snprintf(to, 64, "%s.%d%s", fake_is_cuda() ? "cublaslt 13.1" : "hipblaslt 1.2",
             (int)library->patch, is_reduced ? " tf32" : "");
}

static uint32_t find_candidate(const struct linear *l)
{
    frit_program_info info = {.struct_size = sizeof info};
    const struct frit_program_table *table = l->program.table;
    char identity[64];

    write_identity(identity, l->is_reduced);
    assert_int_equal(table->describe(l->program.self, &info, NULL), FRIT_OK);
    for (uint32_t i = 0; i < info.n_candidates; i++)
        if (info.candidates[i].identity.len == strlen(identity) &&
            memcmp(info.candidates[i].identity.ptr, identity, strlen(identity)) == 0) {
            assert_int_equal(info.candidates[i].numeric_class,
                             l->is_reduced ? FRIT_NUMERIC_REDUCED : FRIT_NUMERIC_REORDERED);
            return i;
        }
    return 0;
}

static frit_status prepare(struct rig *rig, struct linear *l)
{
    const frit_program_table *table = l->program.table;
    frit_arg_sig args[ARGS] = {{0}};
    const frit_signature sig = {.struct_size = sizeof sig,
                                .n_in = 3,
                                .n_out = 1,
                                .arg_stride = sizeof *args,
                                .index_width = 32,
                                .args = args};
    frit_status status;

    for (int i = 0; i < ARGS; i++) {
        args[i].dtype = FRIT_F32;
        args[i].align_log2 = 4;
        dims_of(l, i, &args[i].rank, args[i].dims);
        args[i].strides[0] = i == BIAS ? 1 : args[i].dims[1];
        args[i].strides[1] = i == BIAS ? 0 : 1;
    }
    l->spec = (frit_launch_spec){.struct_size = sizeof l->spec};
    l->variant = (frit_variant){.struct_size = sizeof l->variant};
    l->candidate = find_candidate(l);
    status = table->prepare(l->program.self, l->candidate, &sig, &l->spec, &l->variant, &rig->err);
    if (status != FRIT_PREPARE_NEEDS_COMPILE)
        return status;
    return table->compile(l->program.self, l->candidate, &l->variant, NULL, &rig->err);
}

static void fill_launch(struct linear *l)
{
    for (int i = 0; i < ARGS; i++) {
        frit_arg *arg = &l->args[i];

        *arg = (frit_arg){.memory = l->memory[i].memory,
                          .dtype = FRIT_F32,
                          .align_log2 = 4,
                          .flags = i == Y ? FRIT_ARG_WRITE : FRIT_ARG_READ};
        dims_of(l, i, &arg->rank, arg->dims);
        arg->strides[0] = i == BIAS ? 1 : arg->dims[1];
        arg->strides[1] = i == BIAS ? 0 : 1;
        arg->extent = (uint64_t)(arg->dims[0] * arg->dims[1]) * sizeof(float);
    }
    l->launch = (frit_launch){.struct_size = sizeof l->launch,
                              .n_args = ARGS,
                              .arg_stride = sizeof *l->args,
                              .program = &l->program,
                              .spec = &l->spec,
                              .variant = &l->variant,
                              .args = l->args,
                              .workspace = l->spec.workspace_bytes ? l->workspace.memory : NULL,
                              .candidate = l->candidate};
    l->cmd =
        (frit_cmd){.struct_size = sizeof l->cmd, .kind = FRIT_CMD_LAUNCH, .launch = &l->launch};
}

/* Everything but the operands' numbers; `is_reduced` is set.  The first failure; linear_close in
 * any case. */
static frit_status linear_open(struct rig *rig, struct linear *l, int64_t m, int64_t n, int64_t k)
{
    frit_status status;

    *l = (struct linear){.m = m, .n = n, .k = k, .is_reduced = l->is_reduced};
    status = make_program(rig, l);
    if (!status)
        status = prepare(rig, l);
    for (int i = 0; i <= ARGS && !status; i++) {
        const frit_alloc_desc desc = {sizeof desc, 0, MAX_BYTES, 256};
        frit_allocation *memory = i < ARGS ? &l->memory[i] : &l->workspace;

        memory->struct_size = sizeof *memory;
        status = rig->backend->alloc(rig->device, &desc, memory, &rig->err);
    }
    fill_launch(l);
    return status;
}

static void linear_close(struct rig *rig, struct linear *l)
{
    for (int i = 0; i <= ARGS; i++)
        rig->backend->free(rig->device, i < ARGS ? l->memory[i].memory : l->workspace.memory);
    if (l->program.self)
        l->program.table->destroy(l->program.self);
}

/* ---- numbers ---- */

/* Whole numbers, so that sums are exact; other ones for each seed. */
static float number(int arg, uint32_t seed, int64_t i)
{
    return (float)((i * 7 + arg * 5 + seed * 3) % 17) - 8;
}

/* Waits for a value; failures of earlier ones are known. */
static frit_status wait_for(struct rig *rig, uint64_t value)
{
    frit_failure failure = {.struct_size = sizeof failure, .value = value - 1};
    frit_status status =
        rig->backend->wait(rig->device, NULL, value, UINT64_MAX, &failure, &rig->err);

    return status ? status : failure.status;
}

/* Waits, since memory may be freed behind it. */
static void write_operand(struct rig *rig, void *memory, int arg, uint32_t seed)
{
    static float numbers[MAX_BYTES / sizeof(float)];
    const frit_transfer to = {.struct_size = sizeof to, .memory = memory, .bytes = MAX_BYTES};
    uint64_t value;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = number(arg, seed, (int64_t)i);
    assert_int_equal(rig->backend->write(rig->device, &to, numbers, &value, &rig->err), FRIT_OK);
    assert_int_equal(wait_for(rig, value), FRIT_OK);
}

static void write_all(struct rig *rig, const struct linear *l, uint32_t seed)
{
    for (int i = 0; i < Y; i++)
        write_operand(rig, l->memory[i].memory, i, seed);
}

static void expect_result(struct rig *rig, const struct linear *l, void *memory, uint32_t x_seed,
                          uint32_t seed)
{
    static float got[MAX_BYTES / sizeof(float)];

    rig_read(rig, memory, 0, got, (uint64_t)(l->m * l->n) * sizeof *got);
    for (int64_t i = 0; i < l->m; i++)
        for (int64_t j = 0; j < l->n; j++) {
            float sum = number(BIAS, seed, j);

            for (int64_t k = 0; k < l->k; k++)
                sum += number(X, x_seed, i * l->k + k) * number(W, seed, k * l->n + j);
            if (got[i * l->n + j] != sum)
                fail_msg("y[%d][%d] is %g, not %g", (int)i, (int)j, (double)got[i * l->n + j],
                         (double)sum);
        }
}

/* ---- rigs ---- */

static void reset(void)
{
    runtime->reset();
    library->failing_call = library->calls = 0;
    library->failing_result = library->algorithm_state = 0;
    library->has_no_algorithm = library->has_no_tf32 = false;
    library->patch = 0;
    for (int i = 0; i < FAKE_PRODUCT_KINDS; i++)
        library->products[i] = 0;
}

static int open_rig(void **state)
{
    static struct rig rig;

    reset();
    rig = (struct rig){.products = fake_products_file(), .min_product = 1};
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    rig_close(*state);
    fake_expect_nothing_alive();
    return 0;
}

/* Opens, runs and checks a product; returns the first failure. */
static frit_status run_candidate(struct rig *rig, bool is_reduced, int64_t m, int64_t n, int64_t k)
{
    struct linear l = {.is_reduced = is_reduced};
    uint64_t value;
    frit_status status = linear_open(rig, &l, m, n, k);

    if (!status) {
        write_all(rig, &l, 1);
        status = rig->backend->submit(rig->device, NULL, &l.cmd, 1, sizeof l.cmd, NULL, 0, &value,
                                      &rig->err);
    }
    if (!status)
        status = wait_for(rig, value);
    if (!status)
        expect_result(rig, &l, l.memory[Y].memory, 1, 1);
    linear_close(rig, &l);
    return status;
}

static frit_status run_linear(struct rig *rig, int64_t m, int64_t n, int64_t k)
{
    return run_candidate(rig, false, m, n, k);
}

/* ---- the library computes ---- */

static void products_run(void **state)
{
    uint64_t n = 0;

    for (int64_t m = 1; m < 40; m += 6)
        for (int64_t k = 1; k < 40; k += 9) {
            assert_int_equal(run_linear(*state, m, m * k % 23 + 1, k), FRIT_OK);
            assert_int_equal(library->products[FAKE_PRODUCT_ANY], ++n);
        }
    assert_int_equal(library->products[FAKE_PRODUCT_BIAS], n);
    assert_in_range(library->products[FAKE_PRODUCT_WORKSPACE], 3, n - 3);
}

/* Products of fewer multiplications than the option says are left to kernels. */
static void small_products_are_left_to_kernels(void **state)
{
    struct rig *rig = *state;

    rig_close(rig);
    *rig = (struct rig){.products = fake_products_file(), .min_product = 16 * 16 * 16};
    rig_open(rig);
    assert_int_equal(run_linear(rig, 16, 16, 15), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 0);
    assert_int_equal(run_linear(rig, 16, 16, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 1);
}

static void products_without_algorithm(void **state)
{
    library->has_no_algorithm = true;
    assert_int_equal(run_linear(*state, 16, 16, 16), FRIT_OK);
    library->has_no_algorithm = false;
    library->algorithm_state = 15;
    assert_int_equal(run_linear(*state, 16, 16, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 0);
    library->algorithm_state = 0;
    assert_int_equal(run_linear(*state, 16, 16, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 1);
}

/* Only the candidate with reduced products computes with tf32; where the library has no algorithm
 * for that it computes with f32. */
static void products_are_reduced(void **state)
{
    assert_int_equal(run_candidate(*state, false, 16, 24, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 1);
    assert_int_equal(library->products[FAKE_PRODUCT_TF32], 0);
    assert_int_equal(run_candidate(*state, true, 16, 24, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 2);
    assert_int_equal(library->products[FAKE_PRODUCT_TF32], 1);
    library->has_no_tf32 = true;
    assert_int_equal(run_candidate(*state, true, 16, 24, 16), FRIT_OK);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 3);
    assert_int_equal(library->products[FAKE_PRODUCT_TF32], 1);
}

/* Another version has another identity, and an algorithm of its own another variant. */
static void identities(void **state)
{
    struct rig *rig = *state;
    frit_variant variant[2];

    for (int i = 0; i < 2; i++) {
        struct linear l = {0};

        rig_close(rig);
        library->patch = i * 4;
        *rig = (struct rig){.products = fake_products_file(), .min_product = 1};
        rig_open(rig);
        assert_int_equal(linear_open(rig, &l, 8, 12, 16), FRIT_OK);
        assert_int_not_equal(l.candidate, 0);
        variant[i] = l.variant;
        linear_close(rig, &l);
    }
    assert_memory_not_equal(variant[0].bytes, variant[1].bytes, variant[0].n_bytes);
}

/* ---- no library ---- */

static void expect_kernels(const char *products)
{
    struct rig rig = {.products = products, .min_product = 1};

    reset();
    rig_open(&rig);
    assert_int_equal(run_linear(&rig, 16, 16, 16), FRIT_OK);
    rig_close(&rig);
    fake_expect_nothing_alive();
    assert_int_equal(library->calls, 0);
}

static void without_library(void **state)
{
    (void)state;
    expect_kernels("none");
    expect_kernels("libnothing.so.3");
    expect_kernels("libc.so.6"); /* without the functions */
    expect_kernels("");          /* the vendor's, which is not installed or has no device */
}

/* ---- failures ---- */

/* Each call of the library fails once: a product is left to a kernel or fails clearly, nothing is
 * leaked, and the next one works.  The library is not used where its first calls fail. */
static void each_call_fails(void **state)
{
    int n_failed = 0, n_kernels = 0;

    (void)state;
    for (uint64_t n = 1;; n++) {
        struct rig rig = {.products = fake_products_file(), .min_product = 1};
        frit_status status;
        bool hit, is_used;

        reset();
        library->failing_call = n;
        library->failing_result = 14;
        rig_open(&rig);
        is_used = library->calls < n;
        status = run_linear(&rig, 16, 24, 16);
        hit = library->calls >= n;
        if (status && (status != FRIT_INTERNAL || !strstr(rig.err.text, "error 14")))
            fail_msg("call %d: status %d, '%s'", (int)n, status, rig.err.text);
        n_failed += status != FRIT_OK;
        n_kernels += !status && library->products[FAKE_PRODUCT_ANY] == 0;
        library->failing_call = 0;
        status = run_linear(&rig, 16, 24, 16);
        if (status)
            fail_msg("behind call %d: status %d, '%s'", (int)n, status, rig.err.text);
        assert_int_equal(library->products[FAKE_PRODUCT_ANY] > 0, is_used);
        rig_close(&rig);
        fake_expect_nothing_alive();
        if (!hit)
            break;
    }
    assert_int_equal(n_failed, 2);      /* the bias, and the product */
    assert_in_range(n_kernels, 10, 30); /* what makes a plan */
}

/* ---- recordings ---- */

static const frit_capture_table *capture_of(struct rig *rig)
{
    return rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_CAPTURE_TABLE));
}

static frit_recording *record(struct rig *rig, const frit_cmd *cmds, uint32_t n,
                              const frit_param *params, uint32_t n_params)
{
    frit_recording *recording = NULL;

    if (capture_of(rig)->record(rig->device, NULL, cmds, n, sizeof *cmds, params, n_params,
                                sizeof *params, &recording, &rig->err))
        fail_msg("%s", rig->err.text);
    return recording;
}

static void replay(struct rig *rig, frit_recording *recording, const void *block)
{
    uint64_t value;

    if (capture_of(rig)->replay(rig->device, recording, block, NULL, 0, &value, &rig->err))
        fail_msg("%s", rig->err.text);
    rig_wait(rig, value);
}

/* A product that needs a workspace, and one that does not. */
static void open_both(struct rig *rig, struct linear both[2])
{
    bool has[2] = {false, false};

    for (int64_t k = 8; !has[0] || !has[1]; k++) {
        struct linear l = {0};

        assert_true(k < 40);
        assert_int_equal(linear_open(rig, &l, 8, 12, k), FRIT_OK);
        if (has[l.spec.workspace_bytes != 0]) {
            linear_close(rig, &l);
            continue;
        }
        has[l.spec.workspace_bytes != 0] = true;
        both[l.spec.workspace_bytes != 0] = l;
    }
    for (int i = 0; i < 2; i++) {
        fill_launch(&both[i]); /* it has moved */
        write_all(rig, &both[i], 1);
    }
}

/* Operands that stay: all is one graph. */
static void recorded_in_place(void **state)
{
    struct rig *rig = *state;
    struct linear both[2];
    frit_recording *recording;

    open_both(rig, both);
    recording = record(rig, (const frit_cmd[]){both[0].cmd, both[1].cmd}, 2, NULL, 0);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 2);
    for (uint32_t seed = 2; seed < 5; seed++) {
        for (int i = 0; i < 2; i++)
            write_all(rig, &both[i], seed);
        replay(rig, recording, NULL);
        for (int i = 0; i < 2; i++)
            expect_result(rig, &both[i], both[i].memory[Y].memory, seed, seed);
    }
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 2);
    capture_of(rig)->release(rig->device, recording);
    for (int i = 0; i < 2; i++)
        linear_close(rig, &both[i]);
}

/* Places of a replay. */
struct places {
    frit_place x, y, workspace;
};

/* Commands: a product with operands that stay, a copy of its result, a product of which x, y and
 * the workspace move, one that stays, and a copy. */
enum { COMMANDS = 5, MOVING = 2 };

static frit_recording *record_moving(struct rig *rig, const struct linear both[2],
                                     const frit_allocation copies[2])
{
    const frit_param params[] = {
        {.command = MOVING, .kind = FRIT_PARAM_ARG, .index = X, .at = offsetof(struct places, x)},
        {.command = MOVING, .kind = FRIT_PARAM_ARG, .index = Y, .at = offsetof(struct places, y)},
        {.command = MOVING,
         .kind = FRIT_PARAM_WORKSPACE,
         .at = offsetof(struct places, workspace)}};
    frit_cmd copy[2];

    for (int i = 0; i < 2; i++)
        copy[i] = (frit_cmd){.struct_size = sizeof *copy,
                             .kind = FRIT_CMD_COPY,
                             .dst = copies[i].memory,
                             .src = both[0].memory[Y].memory,
                             .bytes = MAX_BYTES};
    return record(
        rig, (const frit_cmd[COMMANDS]){both[0].cmd, copy[0], both[1].cmd, both[0].cmd, copy[1]},
        COMMANDS, params, 3);
}

static void recorded_with_moving_operands(void **state)
{
    struct rig *rig = *state;
    frit_allocation copies[2], x[2], y[2];
    frit_recording *recording;
    struct linear both[2];

    open_both(rig, both);
    for (int i = 0; i < 2; i++) {
        copies[i] = rig_alloc(rig, MAX_BYTES);
        x[i] = rig_alloc(rig, MAX_BYTES);
        y[i] = rig_alloc(rig, 2 * MAX_BYTES);
        write_operand(rig, x[i].memory, X, (uint32_t)i + 5);
    }
    recording = record_moving(rig, both, copies);
    assert_int_equal(library->products[FAKE_PRODUCT_ANY], 2);
    for (uint64_t n = 1; n <= 6; n++) {
        /* between graphs, and when the addresses come again, all three in a graph for these */
        static const uint64_t n_enqueued[] = {0, 3, 4, 7, 10, 10, 10};
        const uint32_t i = n % 2;
        const struct places places = {{x[i].memory, 0}, {y[i].memory, 0}, {x[1 - i].memory, 256}};

        replay(rig, recording, &places);
        assert_int_equal(library->products[FAKE_PRODUCT_ANY], n_enqueued[n]);
        expect_result(rig, &both[1], y[i].memory, i + 5, 1);
        for (int k = 0; k < 2; k++)
            expect_result(rig, &both[0], copies[k].memory, 1, 1);
        write_operand(rig, x[1 - i].memory, X, 1 - i + 5); /* the workspace was there */
    }
    capture_of(rig)->release(rig->device, recording);
    for (int i = 0; i < 2; i++) {
        rig->backend->free(rig->device, copies[i].memory);
        rig->backend->free(rig->device, x[i].memory);
        rig->backend->free(rig->device, y[i].memory);
        linear_close(rig, &both[i]);
    }
}

/* A product that fails within a replay is reported by wait for the replay's value; the next replay
 * works.  One that fails within the capture makes no recording. */
static void recorded_products_fail(void **state)
{
    struct rig *rig = *state;
    frit_allocation copies[2], y = rig_alloc(rig, MAX_BYTES);
    struct linear both[2];
    frit_recording *recording = NULL;
    uint64_t value;

    open_both(rig, both);
    for (int i = 0; i < 2; i++)
        copies[i] = rig_alloc(rig, MAX_BYTES);
    library->failing_result = 14;
    library->failing_call = library->calls + 2;
    assert_int_equal(capture_of(rig)->record(rig->device, NULL, &both[0].cmd, 1, sizeof both[0].cmd,
                                             NULL, 0, 0, &recording, &rig->err),
                     FRIT_INTERNAL);
    assert_null(recording);
    recording = record_moving(rig, both, copies);
    for (int i = 0; i < 2; i++) {
        const struct places places = {
            {both[1].memory[X].memory, 0}, {y.memory, 0}, {both[1].workspace.memory, 0}};

        library->failing_call = i ? 0 : library->calls + 2;
        assert_int_equal(
            capture_of(rig)->replay(rig->device, recording, &places, NULL, 0, &value, &rig->err),
            FRIT_OK);
        assert_int_equal(wait_for(rig, value), i ? FRIT_OK : FRIT_INTERNAL);
    }
    expect_result(rig, &both[1], y.memory, 1, 1);
    capture_of(rig)->release(rig->device, recording);
    rig->backend->free(rig->device, y.memory);
    for (int i = 0; i < 2; i++) {
        rig->backend->free(rig->device, copies[i].memory);
        linear_close(rig, &both[i]);
    }
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(products_run),
        RIG_TEST(small_products_are_left_to_kernels),
        RIG_TEST(products_without_algorithm),
        RIG_TEST(products_are_reduced),
        RIG_TEST(identities),
        cmocka_unit_test(without_library),
        cmocka_unit_test(each_call_fails),
        RIG_TEST(recorded_in_place),
        RIG_TEST(recorded_with_moving_operands),
        RIG_TEST(recorded_products_fail),
    };

    runtime = fake_open();
    library = fake_open_products();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
